/**
 * The double as a process of its own: `node test/support/eventstoredb/server.ts --port 0 [--data file] [--unary]`.
 * Prints its port on a line when it listens; SIGTERM ends it. With `--data` it knows after a kill what it acknowledged.
 */
import { parseArgs } from 'node:util';
import { EventStoreDouble } from '#test/support/eventstoredb/double.ts';

const { values } = parseArgs({
  options: { port: { type: 'string', default: '0' }, data: { type: 'string' }, unary: { type: 'boolean' } },
});

const double = await EventStoreDouble.start({
  port: Number(values.port),
  batch: values.unary !== true,
  ...(values.data === undefined ? {} : { journal: values.data }),
});
process.stdout.write(`${double.port}\n`);

process.once('SIGTERM', () => void double.stop());
process.once('SIGINT', () => void double.stop());
