"""Spark for tests: sessions on the loopback interface whose files lie in a folder of their own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from tests.kafka.brokers import fetched, missing

ROOT = Path(__file__).parents[2]
POM = Path(__file__).with_name("pom.xml")
TWO_EXECUTORS = "local-cluster[2,1,1024]"

__all__ = ["TWO_EXECUTORS", "missing", "session"]


def session(master: str, folder: Path, *, kafka: bool = False) -> SparkSession:
    """Start Spark; `kafka` gives it the source of that name."""
    home = _home(folder)
    os.environ |= {
        "SPARK_HOME": str(home),  # what starts executors looks there, not for the Python package
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_HOSTNAME": "localhost",
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "adapters")]),
    }
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
        "spark.sql.streaming.metricsEnabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder} -XX:TieredStopAtLevel=1",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    }
    if kafka:
        jars = fetched(POM, f"-Dspark.version={pyspark.__version__}").glob("*.jar")
        settings["spark.jars"] = ",".join(map(str, sorted(jars)))
    builder = SparkSession.builder.master(master).appName("streamclust-tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _home(folder: Path) -> Path:
    """What the package holds, in a folder in which executors may write."""
    home = folder / "spark"
    if not home.exists():
        home.mkdir()
        for part in Path(pyspark.__file__).parent.iterdir():
            (home / part.name).symlink_to(part)
    return home
