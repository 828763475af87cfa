import type { Session } from 'chdb';

/**
 * The engine in this process, with as many sessions as it has queries at once: what a session was told by `use` and
 * `set` stays with it.
 */

export interface Statement {
  readonly database: string;
  readonly settings: ReadonlyMap<string, string>;
  readonly params: ReadonlyMap<string, string>;
  readonly format: string;
  readonly sql: string;
  /** Asked when its turn comes: a statement nobody waits for any more is not run. */
  readonly isWanted: () => boolean;
}

export interface Insert extends Pick<Statement, 'database' | 'settings' | 'isWanted'> {
  readonly table: string;
  readonly columns: readonly string[] | null;
  readonly format: string;
  readonly rows: Buffer;
}

export interface EngineOptions {
  readonly dir: string;
  /** Of all queries and merges together. */
  readonly memoryBytes: number;
}

const sessionsAtMost = 4;

const name = /^[A-Za-z_]\w*$/;
const named = (text: string): string => {
  if (!name.test(text)) throw new Error(`Code: 36. DB::Exception: ${JSON.stringify(text)} is no name. (BAD_ARGUMENTS)`);
  return text;
};
const literal = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

class Lane {
  readonly session: Session;
  readonly #set = new Set<string>();

  constructor(session: Session) {
    this.session = session;
  }

  /** What makes the session the one that this statement asks for. What the last one had set is taken back. */
  preamble({ database, settings }: Pick<Statement, 'database' | 'settings'>): string {
    const told = [...settings].map(([key, value]) => `set ${named(key)} = ${literal(value)}`);
    const back = [...this.#set].filter((key) => !settings.has(key)).map((key) => `set ${key} = default`);
    this.#set.clear();
    for (const key of settings.keys()) this.#set.add(key);
    return [`use ${named(database)}`, ...back, ...told].join('; ');
  }
}

export class Engine {
  readonly #free: Lane[] = [];
  readonly #waiting: ((lane: Lane) => void)[] = [];
  readonly #all: Lane[] = [];

  static async open({ dir, memoryBytes }: EngineOptions): Promise<Engine> {
    const { Session } = await import('chdb');
    // The first session starts the engine, and its arguments are the engine's.
    const connectionArgs = [
      `--max_server_memory_usage=${memoryBytes}`,
      `--max_memory_usage=${Math.floor(memoryBytes * 0.8)}`,
      `--mark_cache_size=${Math.floor(memoryBytes / 16)}`,
      `--primary_index_cache_size=${Math.floor(memoryBytes / 16)}`,
    ];
    const engine = new Engine();
    for (let n = 0; n < sessionsAtMost; n += 1) engine.#all.push(new Lane(new Session(dir, { connectionArgs })));
    engine.#free.push(...engine.#all);
    return engine;
  }

  query({ params, format, sql, ...about }: Statement): Promise<Uint8Array> {
    return this.#with(about.isWanted, async (lane) => {
      const bound = [...params].map(([key, value]) => `set param_${named(key)} = ${literal(value)}`);
      await lane.session.queryAsync([lane.preamble(about), ...bound].join('; '));
      return (await lane.session.queryAsync(sql, { format })).bytes();
    });
  }

  /** Resolves to the number of rows. */
  insert({ table, columns, format, rows, ...about }: Insert): Promise<number> {
    return this.#with(about.isWanted, async (lane) => {
      await lane.session.queryAsync(lane.preamble(about));
      const made = await lane.session.insert({
        table: `${about.database}.${table}`,
        values: rows,
        format: format as 'JSONEachRow',
        ...(columns === null ? {} : { columns }),
      });
      return made.rowsWritten;
    });
  }

  close(): void {
    for (const { session } of this.#all) session.close();
  }

  async #with<T>(isWanted: () => boolean, work: (lane: Lane) => Promise<T>): Promise<T> {
    const lane = this.#free.pop() ?? (await new Promise<Lane>((given) => this.#waiting.push(given)));
    try {
      if (!isWanted()) throw new Error('Code: 394. DB::Exception: Nobody waits for it any more. (QUERY_WAS_CANCELLED)');
      return await work(lane);
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free.push(lane);
      else next(lane);
    }
  }
}
