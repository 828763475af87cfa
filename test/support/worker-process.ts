import type { Log } from '#contracts/ports/log.ts';
import { openPostgresLog } from '#infra/postgres/log.ts';
import { drainSignal } from './drain-signal.ts';
import { openPublishing } from './publishing.ts';

type Parts = Awaited<ReturnType<typeof openPublishing>>;

interface Worker {
  readonly done: Promise<void>;
  /** Closes what the worker has beside its parts and its log. */
  close?(): Promise<unknown>;
}

/** Runs a worker over this database until it is drained. Prints `ready` once the worker runs. */
export const workerProcess = async (
  url: string,
  start: (parts: Parts, log: Log, signal: AbortSignal) => Worker | Promise<Worker>,
): Promise<void> => {
  const parts = await openPublishing(url);
  const log = await openPostgresLog({ url, store: parts.eventStore });
  const { done, close } = await start(parts, log, drainSignal());
  process.stdout.write('ready\n');
  await done;
  await close?.();
  await log.close();
  await parts.close();
  process.stdin.destroy();
};
