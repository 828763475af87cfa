import { Session } from 'node:inspector/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** Which functions of which files run, by V8's own counters: production code alone, from its sources. */

const root = path.resolve(import.meta.dirname, '../..');
const production = /^(services|projections|schemas|contracts|infra)\//;

/** The keys of the functions that ran, by file. */
export type Ran = ReadonlyMap<string, ReadonlySet<string>>;

export interface Size {
  readonly files: number;
  readonly functions: number;
}

/** The file below the root; null where it is no production code. */
const fileOf = (url: string): string | null => {
  if (!url.startsWith('file:')) return null;
  const file = path.relative(root, fileURLToPath(url)).replaceAll(path.sep, '/');
  return production.test(file) ? file : null;
};

export class Coverage {
  readonly #session: Session;

  private constructor(session: Session) {
    this.#session = session;
  }

  static async start(): Promise<Coverage> {
    const session = new Session();
    session.connect();
    await session.post('Profiler.enable');
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    return new Coverage(session);
  }

  /** What ran since the last call: V8 counts from zero again. The body of a module counts as none of its functions. */
  async taken(): Promise<Ran> {
    const { result } = await this.#session.post('Profiler.takePreciseCoverage');
    const ran = new Map<string, Set<string>>();
    for (const { url, functions } of result) {
      const file = fileOf(url);
      if (file === null) continue;
      for (const { functionName, ranges } of functions) {
        const [range] = ranges;
        const isModule = functionName === '' && range?.startOffset === 0;
        if (range === undefined || range.count === 0 || isModule) continue;
        const keys = ran.get(file) ?? new Set();
        ran.set(file, keys.add(`${functionName} ${range.startOffset}`));
      }
    }
    return ran;
  }

  stop(): void {
    this.#session.disconnect();
  }
}

const byFile = (ran: Ran, kept: (keys: ReadonlySet<string>, file: string) => ReadonlySet<string>): Ran =>
  new Map([...ran].map(([file, keys]) => [file, kept(keys, file)] as const).filter(([, keys]) => keys.size > 0));

/** Without the functions of `others`, and without the files of which no other function ran. */
export const without = (ran: Ran, others: Ran): Ran =>
  byFile(ran, (keys, file) => keys.difference(others.get(file) ?? new Set()));

export const common = (ran: Ran, others: Ran): Ran =>
  byFile(ran, (keys, file) => keys.intersection(others.get(file) ?? new Set()));

export const sizeOf = (ran: Ran): Size => ({
  files: ran.size,
  functions: [...ran.values()].reduce((sum, keys) => sum + keys.size, 0),
});
