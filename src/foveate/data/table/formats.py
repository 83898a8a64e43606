"""Formats of tables by the endings of file names, and what those that are not read can be saved as."""

from pathlib import Path
from typing import Literal

from foveate.errors import UserError

Format = Literal["csv", "jsonl", "json", "parquet", "tabs"]

FORMATS: dict[str, Format] = {
    "csv": "csv",
    "jsonl": "jsonl",
    "ndjson": "jsonl",
    "json": "json",
    "parquet": "parquet",
    "pq": "parquet",
}
"""What is read by the ending of a name, before one of .gz; any other is lines with tabs between the cells."""

TABLE_ENDINGS = tuple(f".{name}{packed}" for name in ("tsv", *FORMATS) for packed in ("", ".gz"))
"""How the names of tables in a folder end."""

NOT_READ = {
    **dict.fromkeys(("xlsx", "xls", "xlsm", "ods", "numbers"), ("a workbook", "save it as CSV")),
    **dict.fromkeys(("arrow", "feather", "orc", "avro"), ("a table of columns", "save it as Parquet")),
    **dict.fromkeys(("pkl", "pickle", "joblib", "pt", "pth"), ("a pickle, which is never opened", "save it as JSONL")),
    **dict.fromkeys(("npy", "npz"), ("an array", "save it as CSV")),
    **dict.fromkeys(("mat", "h5", "hdf5", "tfrecord", "lmdb", "mdb"), ("a binary file", "save it as JSONL")),
    **dict.fromkeys(("db", "sqlite", "sqlite3", "dta", "sav", "sas7bdat"), ("a database", "save it as CSV")),
    **dict.fromkeys(("zip", "tar", "tgz", "7z", "rar", "bz2", "xz", "zst"), ("an archive", "unpack it")),
    **dict.fromkeys(("xml", "html", "yaml", "yml", "pdf", "docx"), ("not a table", "save its rows as CSV")),
}
"""What has such an ending, and what to do with it."""


def ending(path: Path) -> str:
    """The ending of a name, before one of .gz, in lower case, without the dot."""
    return path.name.lower().removesuffix(".gz").rpartition(".")[2]


def format_of(path: Path) -> Format:
    """The format that the name of a file says."""
    return FORMATS.get(ending(path), "tabs")


def is_table(path: Path) -> bool:
    """Whether the name of a file says that it is a table, and not plain text."""
    return ending(path) in (*FORMATS, "tsv")


def check_format(path: Path) -> None:
    """Raise UserError for a file of a kind that no table is read of; it is not opened."""
    if path.is_dir():
        raise UserError(f"{path} is a folder, but a table is a file: name the one in it, {path / 'NAME.csv'}")
    if (kind := NOT_READ.get(ending(path))) is not None and "." in path.name:
        raise UserError(f"{path} is {kind[0]}: {kind[1]}; tables are .tsv, .csv, .json, .jsonl or .parquet files")
