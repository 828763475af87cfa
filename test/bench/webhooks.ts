/**
 * Webhooks from an appended event to the receiver having it: how many a second, how late each, what a slow neighbour and
 * receivers that mean harm do to others. The receiver, the load and ours share the machine.
 *
 * Run alone: make bench-webhooks, or a part: make bench-webhooks ARGS="one paced" (QUICK=1 for the short form).
 */
import { parseArgs } from 'node:util';
import { type BenchRow, printRows } from './row.ts';
import { cleanup, endOnSignals, isEnding } from './webhooks/cleanup.ts';
import { kafka, paced } from './webhooks/lateness.ts';
import { memory } from './webhooks/memory.ts';
import { noisy } from './webhooks/noisy.ts';
import { throughput } from './webhooks/throughput.ts';
import { benchDatabase } from './webhooks/world.ts';

type Part = (quick: boolean) => Promise<readonly BenchRow[]>;

const parts: Readonly<Record<string, { readonly says: string; readonly run: Part }>> = {
  one: { says: 'deliveries a second to one endpoint', run: (quick) => throughput('one', quick) },
  five: { says: 'deliveries a second to five endpoints of one tenant', run: (quick) => throughput('five', quick) },
  paced: { says: '300 events a second through standalone: how late they arrive', run: paced },
  kafka: { says: 'the same through the relay and Kafka', run: kafka },
  noisy: { says: 'one tenant while another one’s endpoint takes 10 s for each of 1,500', run: noisy },
  memory: { says: 'memory while receivers answer 300 MB, bombs and drips', run: memory },
};

const help = `usage: make bench-webhooks ARGS="[part]…"      (or: npm run bench-webhooks -- [part]…)

${Object.entries(parts)
  .map(([name, { says }]) => `  ${name.padEnd(8)} ${says}`)
  .join('\n')}

Without a part: all of them, about 20 minutes; QUICK=1: 4 minutes, for development. DATABASE_URL and KAFKA_BROKERS give
real servers. BENCH_PROFILE=<dir> writes CPU profiles of the processes under test. The exit code is 0 also when a goal is
missed: the table says MISSED.`;

export const run = async (
  { quick }: { readonly quick: boolean },
  names: readonly string[] = Object.keys(parts),
): Promise<readonly BenchRow[]> => {
  endOnSignals();
  const rows: BenchRow[] = [];
  for (const name of names) {
    console.log(`webhooks, ${name}: ${parts[name]?.says} …`);
    rows.push(...((await parts[name]?.run(quick)) ?? []));
  }
  return rows;
};

const main = async (): Promise<void> => {
  const { values, positionals } = parseArgs({ options: { help: { type: 'boolean' } }, allowPositionals: true });
  if (values.help === true) return console.log(help);
  const unknown = positionals.find((name) => parts[name] === undefined);
  if (unknown !== undefined)
    throw new Error(`no part is called ${unknown}: there are ${Object.keys(parts).join(', ')}`);
  const quick = process.env.QUICK === '1';
  if (quick) console.log('QUICK=1: the short form');
  {
    await using stack = cleanup();
    for (const line of (await benchDatabase(stack)).environment) console.log(line);
  }
  const rows = await run({ quick }, positionals.length === 0 ? Object.keys(parts) : positionals);
  console.log();
  printRows(rows);
};

if (import.meta.main) {
  try {
    await main();
  } catch (error) {
    if (!isEnding()) console.error(error);
    process.exitCode = 1;
  }
}
