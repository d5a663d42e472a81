"""Kafka through confluent-kafka: the one package that knows the client library."""
