import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Pool } from 'pg';
import { codeLimits } from '#contracts/ports/connect-codes.ts';
import { PostgresConnectCodes } from '#infra/postgres/connect-codes.ts';
import { openPool } from '#infra/postgres/pool.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';

suite('one-time codes in Postgres', (t) => {
  let pool: Pool;
  let codes: PostgresConnectCodes;
  let made = 0;
  const minted = async (workspaceId: string = randomUUID()) => {
    made += 1;
    const code = `CODE${made}`;
    assert.equal(await codes.mint(code, workspaceId), true);
    return code;
  };
  const runOut = (code: string) =>
    pool.query('update ops.connect_codes set expires_at = now() where code = $1', [code]);
  t.before(async () => {
    pool = openPool({ url: (await preparedDatabase()).url });
    codes = new PostgresConnectCodes({ pool });
  });
  t.after(() => pool?.end());

  t('a code remembers where it spoke, each place once, in their order', async () => {
    const code = await minted();
    assert.deepEqual(await codes.placesOf(code), []);
    for (const place of ['-2', '-1', '-2']) await codes.spoke(code, place);
    assert.deepEqual(await codes.placesOf(code), ['-2', '-1']);
    assert.deepEqual(await codes.placesOf(await minted()), [], 'of another code');
  });

  t('a code holds for 15 minutes, and not longer', async () => {
    const code = await minted();
    const { rows } = await pool.query(
      'select extract(epoch from expires_at - now()) as s from ops.connect_codes where code = $1',
      [code],
    );
    assert.ok(Math.abs(Number(rows[0].s) - 900) < 60);
    await codes.spoke(code, '-1');
    await runOut(code);
    await codes.spoke(code, '-2');
    assert.deepEqual(await codes.open([code]), new Set());
    assert.equal(await codes.take(code), false);
    assert.equal(await codes.placesOf(code), null);
    const { rows: kept } = await pool.query('select places from ops.connect_codes where code = $1', [code]);
    assert.deepEqual(kept[0].places, ['-1']);
  });

  t('what is open is told of many at once', async () => {
    const [first, second] = [await minted(), await minted()];
    assert.deepEqual(await codes.open([first, 'NOBODYS', second]), new Set([first, second]));
    assert.deepEqual(await codes.open([]), new Set());
  });

  t('a code has a bound of tries and of places', async () => {
    const code = await minted();
    for (let tries = 0; tries < codeLimits.tries; tries += 1) assert.equal(await codes.take(code), true);
    assert.equal(await codes.take(code), false);
    for (let place = 0; place <= codeLimits.places; place += 1) await codes.spoke(code, String(place));
    assert.equal((await codes.placesOf(code))?.length, codeLimits.places);
  });

  t('a workspace has a share of open codes, which those that ran out leave', async () => {
    const workspaceId = randomUUID();
    const mine: string[] = [];
    while (mine.length < codeLimits.openPerWorkspace) mine.push(await minted(workspaceId));
    assert.equal(await codes.mint('ONE-TOO-MANY', workspaceId), false);
    assert.equal(await codes.placesOf('ONE-TOO-MANY'), null);
    await minted();
    await runOut(mine[0] as string);
    await minted(workspaceId);
    await codes.forget(mine[1] as string);
    await minted(workspaceId);
  });

  t('a forgotten code opens nothing; a sweep deletes those that ran out alone', async () => {
    const [gone, old, open] = [await minted(), await minted(), await minted()];
    await codes.spoke(gone, '-1');
    await codes.forget(gone);
    await codes.forget(gone);
    await codes.spoke(gone, '-1');
    assert.equal(await codes.placesOf(gone), null);
    await runOut(old);
    await codes.sweep();
    const { rows } = await pool.query('select code from ops.connect_codes where code = any($1)', [[gone, old, open]]);
    assert.deepEqual(rows, [{ code: open }]);
  });
});
