/**
 * Webhooks from an appended event to its receiver: the rate, the lateness, and the effect of a slow neighbour and of
 * hostile receivers on others. The receiver, the load and our processes share the machine.
 *
 * Run alone: make bench-webhooks, or a part: make bench-webhooks ARGS="one paced" (QUICK=1 for the short form).
 */
import { benchCommand, type Part, runParts } from './parts.ts';
import type { BenchRow } from './row.ts';
import { cleanup, endOnSignals, isEnding } from './webhooks/cleanup.ts';
import { kafka, paced } from './webhooks/lateness.ts';
import { memory } from './webhooks/memory.ts';
import { noisy } from './webhooks/noisy.ts';
import { throughput } from './webhooks/throughput.ts';
import { benchDatabase } from './webhooks/world.ts';

const parts: Readonly<Record<string, Part>> = {
  one: { says: 'deliveries a second to one endpoint', run: (quick) => throughput('one', quick) },
  five: { says: 'deliveries a second to five endpoints of one tenant', run: (quick) => throughput('five', quick) },
  paced: { says: '300 events a second through standalone: how late they arrive', run: paced },
  kafka: { says: 'the same through the relay and Kafka', run: kafka },
  noisy: { says: 'one tenant while another one’s endpoint takes 10 s for each of 1,500', run: noisy },
  memory: { says: 'memory while receivers answer 300 MB, bombs and drips', run: memory },
};

const machine = async (): Promise<readonly string[]> => {
  await using stack = cleanup();
  return (await benchDatabase(stack)).environment;
};

export const run = ({ quick }: { readonly quick: boolean }): Promise<readonly BenchRow[]> => {
  endOnSignals();
  return runParts({ name: 'webhooks', parts }, quick);
};

if (import.meta.main) {
  endOnSignals();
  try {
    await benchCommand({
      name: 'webhooks',
      parts,
      machine,
      about: `Without a part: all of them, about 20 minutes; QUICK=1: 4 minutes, for development. DATABASE_URL and KAFKA_BROKERS give
real servers. BENCH_PROFILE=<dir> writes CPU profiles of the processes under test.`,
    });
  } catch (error) {
    if (!isEnding()) console.error(error);
    process.exitCode = 1;
  }
}
