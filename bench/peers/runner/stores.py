"""An empty store for each part of each peer, on the private services."""

import os
import shutil
import subprocess
from pathlib import Path

from .install import ROOT, TARGET
from .shell import Failure, output_of

SERVICES = ROOT / "scripts/services"
DATABASE = "peer"
REDIS_DATABASE = "1"


class Stores:
    """Starts the services; ends them unless they ran before."""

    def __enter__(self):
        self.ran_before = (ROOT / "target/services/env").exists()
        if subprocess.run([SERVICES, "start", "redis"]).returncode:
            raise Failure("no services: see above")
        lines = output_of([SERVICES, "env"]).splitlines()
        addresses = dict(line.split("=", 1) for line in lines)
        self.postgres = addresses["DULY_TEST_POSTGRES"].rsplit("/", 1)[0]
        self.redis = addresses["DULY_TEST_REDIS"].rstrip("/")
        return self

    def __exit__(self, *_):
        if not self.ran_before:
            subprocess.run([SERVICES, "stop"])

    def fresh(self, store):
        """Empties a store; where it is, as an environment."""
        if store == "postgres":
            self.sql(f"drop database if exists {DATABASE} with (force)")
            self.sql(f"create database {DATABASE}")
            self.sql("checkpoint")  # the last peer's pages are not this one's work
            return os.environ | {"DATABASE_URL": f"{self.postgres}/{DATABASE}"}
        if store == "redis":
            url = f"{self.redis}/{REDIS_DATABASE}"
            output_of(["redis-cli", "-u", url, "flushdb"])
            return os.environ | {"REDIS_URL": url}
        folder = TARGET / "data"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return os.environ | {"PEER_DATA": str(folder)}

    def sql(self, statement):
        return output_of(["psql", "-qAt", f"{self.postgres}/postgres", "-c", statement])

    def versions(self):
        redis = output_of(["redis-cli", "-u", self.redis, "info", "server"])
        version = next(line for line in redis.splitlines() if line.startswith("redis_version:"))
        return {
            "PostgreSQL": self.sql("show server_version").split()[0],
            "Redis": version.split(":")[1].strip(),
        }
