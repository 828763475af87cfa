import { mkdirSync, rmSync } from 'node:fs';
import { unlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Session } from 'chdb';

/** Files of rows on their way into the engine. They are never synced: an insert without an answer is repeated. */
class Inserting {
  readonly #folder: string;
  #last = 0;

  /** Files of a process that crashed are useless. @param dir the engine's, which this process has locked */
  constructor(dir: string) {
    this.#folder = path.join(path.resolve(dir), 'inserting');
    rmSync(this.#folder, { recursive: true, force: true });
    mkdirSync(this.#folder, { mode: 0o700 });
  }

  /** @param work takes the file's path; the file is deleted when it ends */
  async with<T>(rows: Uint8Array, work: (file: string) => Promise<T>): Promise<T> {
    this.#last += 1;
    const file = path.join(this.#folder, String(this.#last));
    try {
      await writeFile(file, rows, { mode: 0o600 }).catch((error: NodeJS.ErrnoException) => {
        throw new Error(`Code: 243. DB::Exception: no room for rows: ${error.code}. (NOT_ENOUGH_SPACE)`);
      });
      return await work(file);
    } finally {
      await unlink(file).catch(() => undefined);
    }
  }
}

/**
 * The engine in this process, with as many sessions as it runs queries at once: `use` and `set` change a session for
 * good.
 */

interface Statement {
  readonly database: string;
  readonly settings: ReadonlyMap<string, string>;
  readonly params: ReadonlyMap<string, string>;
  readonly format: string;
  readonly sql: string;
  /** Checked when the statement's turn comes: a statement whose caller has left is not run. */
  readonly isWanted: () => boolean;
}

interface Insert extends Pick<Statement, 'database' | 'settings' | 'isWanted'> {
  readonly table: string;
  readonly columns: readonly string[] | null;
  readonly format: string;
  readonly rows: Buffer;
}

interface EngineOptions {
  readonly dir: string;
  /** For all queries and merges together. */
  readonly memoryBytes: number;
}

const maxSessions = 4;
/**
 * From this size on a file is cheaper than the text of a statement, which the engine parses as SQL first, token by
 * token.
 */
const manyBytes = 64 * 1024;

const name = /^[A-Za-z_]\w*$/;
const named = (text: string): string => {
  if (!name.test(text))
    throw new Error(`Code: 36. DB::Exception: ${JSON.stringify(text)} is not a name. (BAD_ARGUMENTS)`);
  return text;
};
const literal = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
const setting = (all: readonly (readonly [string, string])[]): string =>
  `set ${all.map(([key, value]) => `${named(key)} = ${literal(value)}`).join(', ')}`;

/** Our statements contain neither; one that did would change the session for the next statement. */
const changesSession = /(^|;)\s*(use|set)\s/i;

class EngineSession {
  readonly #session: Session;
  /** The database and settings of the session. */
  #database: string | null = null;
  #settings: ReadonlyMap<string, string> = new Map();

  constructor(session: Session) {
    this.#session = session;
  }

  /** Runs the work in a session with exactly this database and these settings. */
  async with<T>(
    { database, settings }: Pick<Statement, 'database' | 'settings'>,
    work: (session: Session) => Promise<T>,
  ) {
    // Most statements need the settings of the last one: each `set` costs the engine as much as a small statement.
    const wanted = [...settings].filter(([key, value]) => this.#settings.get(key) !== value);
    const back = [...this.#settings.keys()].filter((key) => !settings.has(key));
    const steps = [
      ...(this.#database === database ? [] : [`use ${named(database)}`]),
      ...back.map((key) => `set ${key} = default`),
      ...(wanted.length === 0 ? [] : [setting(wanted)]),
    ];
    try {
      if (steps.length > 0) await this.#session.queryAsync(steps.join('; '));
    } catch (error) {
      await this.#forget([...back, ...wanted.map(([key]) => key)]);
      throw error;
    }
    [this.#database, this.#settings] = [database, new Map(settings)];
    return work(this.#session);
  }

  async query({ params, format, sql, ...about }: Statement): Promise<Uint8Array> {
    if (changesSession.test(sql))
      throw new Error('Code: 344. DB::Exception: use and set are not supported here. (SUPPORT_IS_DISABLED)');
    return this.with(about, async (session) => {
      const bound = [...params].map(([key, value]) => [`param_${key}`, value] as const);
      if (bound.length > 0) await session.queryAsync(setting(bound));
      return (await session.queryAsync(sql, { format })).bytes();
    });
  }

  /** The session refused one of these settings and has some of the others. */
  async #forget(keys: readonly string[]): Promise<void> {
    const all = new Set([...this.#settings.keys(), ...keys].filter((key) => name.test(key)));
    [this.#database, this.#settings] = [null, new Map()];
    for (const key of all) await this.#session.queryAsync(`set ${key} = default`).catch(() => undefined);
  }

  close(): void {
    this.#session.close();
  }
}

const inText = async (
  session: Session,
  { database, table, columns, format, rows }: Omit<Insert, 'isWanted'>,
): Promise<number> => {
  const made = await session.insert({
    table: `${database}.${table}`,
    values: rows,
    format: format as 'JSONEachRow',
    ...(columns === null ? {} : { columns }),
  });
  return made.rowsWritten;
};

export class Engine {
  readonly #free: EngineSession[];
  readonly #waiting: ((session: EngineSession) => void)[] = [];
  readonly #all: readonly EngineSession[];
  readonly #inserting: Inserting;

  static async open({ dir, memoryBytes }: EngineOptions): Promise<Engine> {
    const { Session } = await import('chdb');
    // The first session starts the engine, and its arguments are the engine's.
    const connectionArgs = [
      `--max_server_memory_usage=${memoryBytes}`,
      `--max_memory_usage=${Math.floor(memoryBytes * 0.8)}`,
      `--mark_cache_size=${Math.floor(memoryBytes / 16)}`,
      `--primary_index_cache_size=${Math.floor(memoryBytes / 16)}`,
    ];
    const lanes = Array.from({ length: maxSessions }, () => new EngineSession(new Session(dir, { connectionArgs })));
    return new Engine(lanes, new Inserting(dir));
  }

  private constructor(lanes: readonly EngineSession[], inserting: Inserting) {
    this.#all = lanes;
    this.#free = [...lanes];
    this.#inserting = inserting;
  }

  query(statement: Statement): Promise<Uint8Array> {
    return this.#with(statement.isWanted, (session) => session.query(statement));
  }

  /** Resolves to the number of rows. */
  insert({ isWanted, ...insert }: Insert): Promise<number> {
    return this.#with(isWanted, (session) =>
      session.with(insert, (session) =>
        insert.rows.length < manyBytes ? inText(session, insert) : this.#inFile(session, insert),
      ),
    );
  }

  #inFile(session: Session, { database, table, columns, format, rows }: Omit<Insert, 'isWanted'>): Promise<number> {
    const names = columns === null ? '' : `(${columns.map(named).join(', ')})`;
    // The structure is that of the target table: nothing is guessed from the rows.
    const from = (file: string): string => `insert into ${named(database)}.${named(table)} ${names}
      select * from file(${literal(file)}, ${named(format)}) settings use_structure_from_insertion_table_in_table_functions = 1`;
    return this.#inserting.with(rows, async (file) => (await session.queryAsync(from(file))).rowsRead);
  }

  close(): void {
    for (const session of this.#all) session.close();
  }

  async #with<T>(isWanted: () => boolean, work: (session: EngineSession) => Promise<T>): Promise<T> {
    const session = this.#free.pop() ?? (await new Promise<EngineSession>((given) => this.#waiting.push(given)));
    try {
      if (!isWanted()) throw new Error('Code: 394. DB::Exception: The caller no longer waits. (QUERY_WAS_CANCELLED)');
      return await work(session);
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free.push(session);
      else next(session);
    }
  }
}
