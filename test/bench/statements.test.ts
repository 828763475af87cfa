/**
 * No bench runs in `make test`, and types do not see SQL: each loads here, and each statement on tables of ours is prepared
 * against the schema of today. A bench whose tables moved away would else be found by whoever needs its figure.
 */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { migrateEvents } from '#infra/postgres/event-store.ts';
import { migrate as migrateReadModels } from '#projections/engine/tables.ts';
import { view } from '#projections/shapes.ts';
import { defaultPartitions } from '#schemas/topics.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';

interface Statement {
  readonly file: string;
  readonly sql: string;
  /** Parts of it are known at run time alone. */
  readonly isOpen: boolean;
}

const verbs = /^\s*(?:select|insert|update|delete|with|vacuum analyze)\s/i;
/** Schemas of ours. */
const ours = /\b(?:ops|read|es)\.\w/;

/** The end of what begins behind `${`. */
const endOf = (text: string, from: number): number => {
  let depth = 1;
  for (let at = from; at < text.length; at += 1) {
    if (text[at] === '{') depth += 1;
    if (text[at] === '}') depth -= 1;
    if (depth === 0) return at;
  }
  return text.length;
};

/** Words between quotes, with views by their names and 1 for any other value. */
const statementsIn = (file: string, text: string): readonly Statement[] => {
  const found: Statement[] = [];
  for (const { index, 1: quote = '' } of text.matchAll(
    /(?<=[\s(,:[?=])([`'])(?=\s*(?:select|insert|update|delete|with|vacuum)\s)/gi,
  )) {
    let [sql, isOpen, at] = ['', false, index + 1];
    while (at < text.length && text[at] !== quote) {
      if (quote === '`' && text.startsWith('${', at)) {
        const end = endOf(text, at + 2);
        const name = /^view\('(\w+)'\)$/.exec(text.slice(at + 2, end).trim())?.[1];
        isOpen ||= name === undefined;
        sql += name === undefined ? '1' : view(name as Parameters<typeof view>[0]);
        at = end + 1;
      } else {
        sql += text[at];
        at += 1;
      }
    }
    if (verbs.test(sql) && ours.test(sql)) found.push({ file, sql, isOpen });
  }
  return found;
};

/** What the database says of it; null: nothing that the schema is at fault for. */
const faultOf = async (client: pg.PoolClient, { sql, isOpen }: Statement): Promise<string | null> => {
  const table = /^\s*vacuum analyze (\S+)$/i.exec(sql)?.[1];
  try {
    await client.query(`prepare one as ${table === undefined ? sql : `select from ${table}`}`);
    await client.query('deallocate one');
    return null;
  } catch (error) {
    if (!(error instanceof pg.DatabaseError)) throw error;
    // A table, a column or a function that is not there. Other words are of the value 1 where the statement has another.
    const isMissing = ['42P01', '42703', '42883', '3F000'].includes(error.code ?? '');
    return isMissing || !isOpen ? error.message : null;
  }
};

const folder = import.meta.dirname;
const files = globSync('**/*.ts', { cwd: folder }).filter((file) => !file.endsWith('.test.ts'));
const textOf = (file: string): string => readFileSync(path.join(folder, file), 'utf8');

suite('benches', (t) => {
  t('each loads', async () => {
    const benches = files.filter((file) => !file.includes('/') && /^export const run\b/m.test(textOf(file)));
    assert.ok(benches.length >= 20, benches.join());
    for (const file of benches) {
      const { run } = (await import(path.join(folder, file))) as { readonly run?: unknown };
      assert.equal(typeof run, 'function', file);
    }
  });

  t('each statement on our tables fits the schema', async () => {
    const statements = files.flatMap((file) => statementsIn(file, textOf(file)));
    assert.ok(statements.length >= 25, String(statements.length));
    const pool = new pg.Pool({ connectionString: (await preparedDatabase()).url, max: 2 });
    await migrateEvents(pool, 'es', defaultPartitions);
    await migrateReadModels(pool);
    const client = await pool.connect();
    const faults: string[] = [];
    for (const one of statements) {
      const fault = await faultOf(client, one);
      if (fault !== null) faults.push(`${one.file}: ${fault}: ${one.sql.slice(0, 200)}`);
    }
    const moved = { file: '', sql: 'select id from ops.insights_former', isOpen: true };
    const seen = await faultOf(client, moved);
    client.release();
    await pool.end();
    assert.deepEqual(faults, [], faults.join('\n'));
    assert.match(seen ?? '', /does not exist/);
  });
});
