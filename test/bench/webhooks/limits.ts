/**
 * The best rates of the same machine, each in its own process, sending 1,024 bytes to the receiver of the bench:
 * `rough` (see there), `signing` (both signatures and our own client, nothing stored) and `bare` (undici, nothing
 * else). Run as a program this file is that process.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { rough } from './rough.ts';
import { plainSender, type Send, signingSender, width } from './senders.ts';

export const limits = ['rough', 'signing', 'bare'] as const;
export type Limit = (typeof limits)[number];

interface Asked {
  readonly limit: Limit;
  readonly urls: readonly string[];
  readonly databaseUrl: string;
  readonly ms: number;
}

const warmMs = 1_000;

/** Deliveries a second, the endpoints in turn. */
export const limitOf = async (stack: AsyncDisposableStack, asked: Asked): Promise<number> => {
  const child = fork(import.meta.filename, [JSON.stringify(asked)], { execArgv: [] });
  stack.defer(() => void child.kill('SIGKILL'));
  const died = once(child, 'exit').then(([code]) => {
    throw new Error(`the ${asked.limit} loop ended with ${code}`);
  });
  died.catch(() => undefined);
  const [rate] = await Promise.race([once(child, 'message'), died]);
  child.kill('SIGKILL');
  return Number(rate);
};

/** As many under way as ours has. */
const flood = async (send: Send, endpoints: number, ms: number): Promise<number> => {
  const body = Buffer.alloc(1_024, 'x');
  const start = performance.now();
  let sent = 0;
  const worker = async (): Promise<void> => {
    while (performance.now() < start + ms) await send(sent++, body);
  };
  await Promise.all(Array.from({ length: Math.min(width * endpoints, 256) }, worker));
  return (sent * 1_000) / (performance.now() - start);
};

const measure = async ({ limit, urls, databaseUrl, ms }: Asked): Promise<number> => {
  if (limit === 'rough') return rough(databaseUrl, urls, { warmMs, ms });
  const send = limit === 'signing' ? signingSender(urls) : plainSender(urls);
  await flood(send, urls.length, warmMs);
  return flood(send, urls.length, ms);
};

if (import.meta.main) {
  process.on('disconnect', () => process.exit());
  process.send?.(await measure(JSON.parse(process.argv[2] ?? '{}') as Asked));
}
