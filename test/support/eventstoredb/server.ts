/**
 * The double as a program: `node test/support/eventstoredb/server.ts --port 0 [--data file] [--unary] [--release
 * 23.10]`. Prints its port on a line when it listens; SIGTERM ends it. With `--data` acknowledged appends survive a
 * kill.
 */
import { parseArgs } from 'node:util';
import { EventStoreDouble } from '#test/support/eventstoredb/double.ts';

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    data: { type: 'string' },
    unary: { type: 'boolean' },
    release: { type: 'string' },
  },
});

const double = await EventStoreDouble.start({
  port: Number(values.port),
  batch: values.unary !== true,
  ...(values.release === '23.10' ? { release: values.release } : {}),
  ...(values.data === undefined ? {} : { journal: values.data }),
});
process.stdout.write(`${double.port}\n`);

// NOTE: it must end by `exit`. After a reset HTTP/2 socket, Node 24.21 may loop for ever in the clean-up of a process
// that ends because nothing is left to do (`Environment::CleanupHandles`, seen in gdb), at full speed and ignoring
// SIGTERM.
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.once(signal, () => void double.stop().finally(() => process.exit(0)));
}
