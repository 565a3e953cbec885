"""Arrow files as somebody else writes and reads them."""

from pyarrow import ipc


def write_batches(path, batches, **options):
    with ipc.new_file(str(path), batches[0].schema, **options) as file:
        for batch in batches:
            file.write_batch(batch)


def batch_of(path):
    with ipc.open_file(str(path)) as file:
        return file.get_batch(0)
