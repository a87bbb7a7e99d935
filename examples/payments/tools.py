"""Payments into a file of the workspace, which stands for a bank: what is in it has happened, whoever was killed."""

import json
from pathlib import Path

from harness.agent import Confirmed, tool

BANK = Path("bank.jsonl")


@tool(effect="read_only")
def balance(account: str) -> int:
    """Tell the balance of an account, in cents.

    Args:
        account: Its name.
    """
    return 10_000 - sum(entry["cents"] for entry in _entries() if entry.get("from") == account)


def _was_paid(invoice: str, **_):
    """Ask the bank: a payment of an invoice is there, with its number, or it never happened."""
    for number, entry in enumerate(_entries(), 1):
        if entry["invoice"] == invoice:
            return Confirmed({"payment": number})
    return False


@tool(effect="irreversible", verify=_was_paid)
def pay(account: str, invoice: str, cents: int) -> dict:
    """Pay an invoice.

    Args:
        account: Where the money comes from.
        invoice: Its number.
        cents: How much.
    """
    with BANK.open("a", encoding="utf-8") as bank:
        bank.write(json.dumps({"from": account, "invoice": invoice, "cents": cents}) + "\n")
    return {"payment": len(_entries())}


def _nobody_answers(invoice: str):
    """The archive takes papers, and tells nobody what it has."""


@tool(effect="irreversible", verify=_nobody_answers)
def archive(invoice: str) -> str:
    """Put an invoice into the archive.

    Args:
        invoice: Its number.
    """
    return f"{invoice} archived"


@tool(effect="idempotent")
def set_status(invoice: str, status: str, idempotency_key: str) -> str:
    """Set the status of an invoice.

    Args:
        invoice: Its number.
        status: One word.
    """
    Path(f"{invoice}.status").write_text(f"{status} {bool(idempotency_key)}\n", encoding="utf-8")
    return status


@tool(effect="irreversible")
def notify(customer: str) -> str:
    """Write to a customer.

    Args:
        customer: The customer's name.
    """
    raise ConnectionError(f"{customer} cannot be reached")


def _entries():
    return [json.loads(line) for line in BANK.read_text(encoding="utf-8").splitlines()] if BANK.exists() else []


TOOLS = [balance, pay, archive, set_status, notify]
