/**
 * The database keeps a check value of each version of the secret key, never a key. A process with another key would
 * accept posts that no process can decrypt, so it refuses to start.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type pg from 'pg';
import { tablesLock, withTableLock } from '#contracts/base/migration.ts';
import { SetupError } from '#contracts/ports/setup-error.ts';
import type { PostgresDataKeys, WrappingKeys } from './data-keys.ts';

export interface CheckedKeys extends WrappingKeys {
  /** Where the keys were read from, for the operator: a setting or a file. */
  readonly source: string;
  versions(): readonly string[];
  has(version: string): boolean;
  subKey(purpose: 'wrapping' | 'key-check', version?: string): Buffer;
}

/** An HMAC under a sub-key of its own: equal for equal keys, and reveals nothing else about them. */
const checkValueOf = (keys: Pick<CheckedKeys, 'subKey'>, version: string): Buffer =>
  createHmac('sha256', keys.subKey('key-check', version)).update(`postline key check ${version}`).digest();

const another = (version: string, source: string): SetupError =>
  new SetupError(
    `SECRET_KEY: ${version} of ${source} is not the key ${version} that this database was used with. Put the right key ` +
      `there (it is in the backup of the installation). Where that one is lost for good and nothing needs it any more, ` +
      'put a new key first under a version that was never used.',
  );

const lacking = (version: string, source: string, uses: number): SetupError =>
  new SetupError(
    `SECRET_KEY: version ${version} is not in ${source}, and ${uses} data keys of clients are wrapped with it. Add it ` +
      `behind the current one (v2:…,${version}:…); it is in the backup of the installation.`,
  );

/** Check values by version. */
const known = async (db: pg.Pool | pg.ClientBase): Promise<ReadonlyMap<string, Buffer>> => {
  const { rows } = await db.query<{ version: string; check_value: Buffer }>(
    'select version, check_value from ops.secret_keys',
  );
  return new Map(rows.map((row) => [row.version, row.check_value]));
};

/** @returns the versions that have no check value, with theirs. @throws SetupError as `checkKeys` */
const unchecked = async (
  db: pg.Pool | pg.ClientBase,
  keys: CheckedKeys,
  dataKeys: PostgresDataKeys,
): Promise<ReadonlyMap<string, Buffer>> => {
  const wrapped = await dataKeys.uses(db);
  const checks = await known(db);
  for (const [version, uses] of wrapped) if (!keys.has(version)) throw lacking(version, keys.source, uses);
  const missing = new Map<string, Buffer>();
  for (const version of keys.versions()) {
    const own = checkValueOf(keys, version);
    const check = checks.get(version);
    const agrees = check === undefined ? await dataKeys.opens(version, db) : timingSafeEqual(check, own);
    if (agrees === false) throw another(version, keys.source);
    if (check === undefined) missing.set(version, own);
  }
  return missing;
};

/**
 * The first process that brings a version to a database decides its key, unless that version wraps data keys already:
 * then the key must open one.
 * @param decides false for a command that only reads: it stores no check value
 * @throws SetupError when the key of a version has changed, or when a version that wraps something is missing
 */
export const checkKeys = async (
  pool: pg.Pool,
  keys: CheckedKeys,
  dataKeys: PostgresDataKeys,
  decides = true,
): Promise<void> => {
  if ((await unchecked(pool, keys, dataKeys)).size === 0 || !decides) return;
  // Under the lock: of two first starts with different keys the second must be refused.
  await withTableLock(pool, tablesLock, async (tx) => {
    for (const [version, own] of await unchecked(tx, keys, dataKeys))
      await tx.query('insert into ops.secret_keys (version, check_value) values ($1, $2)', [version, own]);
  });
};
