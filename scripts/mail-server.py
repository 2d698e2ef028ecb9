"""The SMTP server of scripts/mail-server. It listens on a free port of the loopback and prints one line
of JSON each: first {"port": …}, then a line for each mail that it takes. It ends when its standard input
does.

The part before the @ of a recipient decides: `refused…` is refused for good, `greylisted…` is deferred
once, `hanging…` gets no answer. The login is `duly`, the password `secret`."""

import argparse
import asyncio
import email
import email.policy
import json
import logging
import os
import ssl
import sys
import warnings

from aiosmtpd.smtp import SMTP, AuthResult


class Handler:
    def __init__(self):
        self.seen = set()

    async def handle_RCPT(self, server, session, envelope, address, options):
        local = address.split("@")[0]
        if local.startswith("refused"):
            return "550 5.1.1 no such user here"
        if local.startswith("greylisted") and address not in self.seen:
            self.seen.add(address)
            return "451 4.7.1 greylisted, try again later"
        if local.startswith("hanging"):
            await asyncio.Event().wait()
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        text, html = message.get_body(("plain",)), message.get_body(("html",))
        say(
            {
                "peer": session.peer[1],
                "user": session.auth_data,
                "encrypted": server.transport.get_extra_info("ssl_object") is not None,
                "sender": envelope.mail_from,
                "recipients": envelope.rcpt_tos,
                "headers": {name: str(value) for name, value in message.items()},
                "addresses": {
                    name: [[one.display_name, one.addr_spec] for one in message[name].addresses]
                    for name in ("from", "to", "cc")
                    if name in message
                },
                "text": text and text.get_content(),
                "html": html and html.get_content(),
                "defects": [str(defect) for defect in message.defects],
            }
        )
        return "250 2.0.0 queued as 42"


def log_in(server, session, envelope, mechanism, data):
    if (data.login, data.password) == (b"duly", b"secret"):
        return AuthResult(success=True, auth_data=data.login.decode())
    # With `handled`, the server would say nothing at all.
    return AuthResult(success=False, handled=False)


def say(value):
    print(json.dumps(value), flush=True)


async def main():
    flags = argparse.ArgumentParser()
    flags.add_argument("--tls", choices=["starttls", "tls", "none"], default="none")
    flags.add_argument("--certificate", help="a PEM file with the certificate and its key")
    flags.add_argument("--login", action="store_true", help="require a login")
    asked = flags.parse_args()
    context = None
    if asked.certificate:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(asked.certificate)
    handler = Handler()

    def connection():
        return SMTP(
            handler,
            hostname="mail.test",
            authenticator=log_in,
            auth_required=asked.login,
            auth_require_tls=asked.tls == "starttls",
            tls_context=context if asked.tls == "starttls" else None,
            require_starttls=asked.tls == "starttls",
        )

    loop = asyncio.get_running_loop()
    own = context if asked.tls == "tls" else None
    server = await loop.create_server(connection, "127.0.0.1", 0, ssl=own)
    say({"port": server.sockets[0].getsockname()[1]})
    # Ends with the process that started it.
    await loop.run_in_executor(None, sys.stdin.read)
    sys.stdout.flush()


# Both are about settings that are meant for tests.
logging.disable(logging.WARNING)
warnings.simplefilter("ignore")
try:
    asyncio.run(main())
finally:
    # Connections that hang would keep the process.
    os._exit(0)
