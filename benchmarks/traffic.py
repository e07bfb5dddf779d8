"""How much the processes of a cluster send."""

from distributed.comm.tcp import TCP


def sent(client):
    """Bytes that the workers have sent to anyone, and those of this process: of the client, and of its scheduler."""
    return sum(client.run(sent_here).values()), sent_here()


def sent_here():
    """Bytes that this process has sent since the first call."""
    if "sent" not in vars(TCP):
        write = TCP.write

        async def counted(self, *arguments, **settings):
            n = await write(self, *arguments, **settings)
            TCP.sent += n
            return n

        TCP.sent, TCP.write = 0, counted
    return TCP.sent
