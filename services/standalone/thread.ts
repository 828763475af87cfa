import { workerData } from 'node:worker_threads';

/** A thread of standalone: the processes that share it, each by its own main.ts. */
const { mains } = workerData as { readonly mains: readonly string[] };
await Promise.all(mains.map((main) => import(main)));
