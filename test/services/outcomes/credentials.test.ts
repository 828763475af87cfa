import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { credentialOf } from '#contracts/ports/credentials.suite.ts';
import type { Credential, CredentialOwner, Refresh, Refreshed } from '#contracts/ports/credentials.ts';
import { PostgresCredentials } from '#infra/postgres/credentials.ts';
import { PostgresDataKeys } from '#infra/postgres/data-keys.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { createLogger } from '#runtime/process/telemetry.ts';
import type { Platform } from '#schemas/common.ts';
import { type CredentialWatchDeps, watchCredentials } from '#services/outcomes/credentials.ts';
import { Mortals } from '#test/support/mortals.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { PublishingWorld } from '#test/support/publishing.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const script = fileURLToPath(new URL('./credentials-process.ts', import.meta.url));
const soon = (ms: number): string => new Date(Date.now() + ms).toISOString();
const later = (): string => soon(86_400_000);

/** Each test has a network of its own, so that no test refreshes the credentials of another. */
suite('credentials are refreshed ahead', { waits: true, timeoutMs: 120_000 }, (t) => {
  const key = `v1:${randomBytes(32).toString('base64')}`;
  const logFile = path.join(tmpdir(), `postline-credentials-${randomUUID()}.log`);
  const logger = createLogger('test', 'info', logFile);
  let world: PublishingWorld;
  let clientId: string;
  let credentials: PostgresCredentials;
  const mortals = new Mortals(script, () => [world.url, key]);

  t.before(async () => {
    world = await PublishingWorld.open((await preparedDatabase()).url);
    const { pool } = world;
    const keys = new PostgresDataKeys({ pool, secrets: new Secrets(key) });
    credentials = new PostgresCredentials({ pool, keys });
    clientId = await world.client();
  });
  t.after(async () => {
    await mortals.end();
    await world?.close();
    rmSync(logFile, { force: true });
  });

  const connected = async (platform: Platform, expiresAt: string | null, workspaceId = world.workspaceId) => {
    const { id } = await world.connect(clientId, platform);
    const credential = credentialOf({ expiresAt });
    await credentials.keep({ accountId: id, workspaceId, clientId, platform }, credential);
    return { id, credential };
  };
  const versionOf = async (id: string): Promise<number | undefined> => (await credentials.read(id))?.version;
  const refreshed = (): Refresh => ({ kind: 'refreshed', credential: credentialOf({ expiresAt: later() }) });
  const watch = (refreshers: CredentialWatchDeps['refreshers'], over: Partial<CredentialWatchDeps> = {}) =>
    world.run((signal) =>
      watchCredentials(
        {
          ...{ credentials, refreshers, logger, pool: world.pool, store: world.store, now: Date.now },
          config: { sweepIntervalMs: 100, leaseTtlMs: 900 },
          rules: Object.fromEntries(Object.keys(refreshers).map((platform) => [platform, { perHour: 3_600_000 }])),
          ...over,
        },
        signal,
      ),
    );
  const lapsesOf = async (id: string) =>
    (await world.store.readStream(`account-${id}`)).filter(({ type }) => type === 'AccountReauthRequired');

  t('those that end within the window are refreshed once by several processes, and no others', async () => {
    const ending = await Promise.all(Array.from({ length: 20 }, (_, at) => connected('x', soon(at * 10_000))));
    const others = [await connected('x', later()), await connected('x', null), await connected('threads', soon(0))];
    const asked: string[] = [];
    const ask = async (_: Credential, _signal: AbortSignal, { accountId }: CredentialOwner): Promise<Refresh> => {
      asked.push(accountId);
      return refreshed();
    };
    const watches = [watch({ x: ask }), watch({ x: ask })];
    await until('all are refreshed', async () => {
      const versions = await Promise.all(ending.map(({ id }) => versionOf(id)));
      return versions.every((version) => version === 2);
    });
    for (const one of watches) await one.stop();
    assert.deepEqual(asked.sort(), ending.map(({ id }) => id).sort());
    for (const { id } of others) assert.equal(await versionOf(id), 1);
  });

  t('the accounts of a workspace, however slow, hold no other workspace that comes later', async () => {
    await Promise.all(Array.from({ length: 4 }, () => connected('youtube', soon(0))));
    const { promise: answer, resolve } = Promise.withResolvers<Refresh>();
    let asked = 0;
    const late: string[] = [];
    const running = watch({
      youtube: async (_, _signal, { accountId }) => {
        asked += 1;
        return late.includes(accountId) ? refreshed() : answer;
      },
    });
    await until('they have their share', () => asked === 2);
    const { id } = await world.connect(clientId, 'youtube');
    late.push(id);
    const owner = { accountId: id, workspaceId: randomUUID(), clientId, platform: 'youtube' } as const;
    await credentials.keep(owner, credentialOf({ expiresAt: soon(0) }));
    await until('the other is refreshed', async () => (await versionOf(id)) === 2);
    assert.equal(asked, 3);
    resolve(refreshed());
    await running.stop();
  });

  t('a lapse is recorded once, with the words of the network', async () => {
    const { id } = await connected('facebook', soon(0));
    const ended: Refreshed['kind'][] = [];
    const running = watch(
      { facebook: async () => ({ kind: 'refused', reason: 'The user removed the app' }) },
      { onRefresh: (_, kind) => kind !== 'failed' && ended.push(kind) },
    );
    await until('the lapse is acknowledged', async () => {
      const { rows } = await world.pool.query(
        'select lapse_reported from ops.network_credentials where account_id = $1',
        [id],
      );
      return rows[0]?.lapse_reported === true;
    });
    await running.stop();
    assert.deepEqual(await credentials.ending('facebook', later(), 10), [], 'the watch leaves it alone');
    const lapses = await lapsesOf(id);
    assert.deepEqual(
      lapses.map(({ data }) => data.reason),
      ['The user removed the app'],
    );
    assert.deepEqual(ended, ['lapsed']);
  });

  t('the owner reads that the answer to a refresh was lost', async () => {
    const { id } = await connected('instagram', soon(0));
    await credentials.refresh(
      id,
      1,
      async () => ({ kind: 'unavailable', reason: 'no answer', isSilent: true }),
      new AbortController().signal,
    );
    await world.pool.query('update ops.network_credentials set rests_until = null where account_id = $1', [id]);
    const running = watch({ instagram: async () => ({ kind: 'refused', reason: 'invalid_grant' }) });
    const [event] = await until('the lapse', async () => {
      const lapses = await lapsesOf(id);
      return lapses.length > 0 && lapses;
    });
    await running.stop();
    assert.match(String(event?.data.reason), /^The network's answer to a refresh was lost.*invalid_grant$/);
  });

  t('a consent that comes right after the refusal is not undone by it', async () => {
    const { id } = await connected('linkedin', soon(0));
    /** The owner consents again before anybody records the lapse. */
    class Overtaken extends PostgresCredentials {
      override async refresh(...args: Parameters<PostgresCredentials['refresh']>): Promise<Refreshed> {
        const ended = await super.refresh(...args);
        const owner = { accountId: id, workspaceId: world.workspaceId, clientId, platform: 'linkedin' } as const;
        await this.keep(owner, credentialOf({ expiresAt: later() }));
        return ended;
      }
    }
    const keys = new PostgresDataKeys({ pool: world.pool, secrets: new Secrets(key) });
    const ended: string[] = [];
    const running = watch(
      { linkedin: async () => ({ kind: 'refused', reason: 'revoked' }) },
      {
        credentials: new Overtaken({ pool: world.pool, keys }),
        onRefresh: (_, kind) => ended.push(kind),
      },
    );
    await until('the refresh ended', () => ended.length > 0);
    await running.stop();
    assert.deepEqual(ended, ['lapsed']);
    assert.deepEqual(await lapsesOf(id), []);
  });

  t('a workspace with many slow refreshes delays no other, nor does a slow network', async () => {
    const [busy, small] = [randomUUID(), randomUUID()];
    const slow = await Promise.all(Array.from({ length: 6 }, () => connected('tiktok', soon(-60_000), busy)));
    const quick = await connected('tiktok', soon(0), small);
    const elsewhere = await connected('youtube', soon(0), busy);
    const slowTokens = new Set(slow.map(({ credential }) => credential.secret.accessToken));
    let free: () => void = () => undefined;
    const freed = new Promise<void>((resolve) => {
      free = resolve;
    });
    let atOnce = 0;
    let most = 0;
    const ask = async ({ secret }: Credential): Promise<Refresh> => {
      if (!slowTokens.has(secret.accessToken)) return refreshed();
      atOnce += 1;
      most = Math.max(most, atOnce);
      await freed;
      atOnce -= 1;
      return refreshed();
    };
    const running = watch({ tiktok: ask, youtube: async () => refreshed() });
    await until('the others are refreshed', async () => (await versionOf(quick.id)) === 2);
    await until('the other network too', async () => (await versionOf(elsewhere.id)) === 2);
    assert.equal(most, 2, 'the share of a workspace');
    free();
    await until('all are refreshed', async () =>
      (await Promise.all(slow.map(({ id }) => versionOf(id)))).every((version) => version === 2),
    );
    await running.stop();
    assert.equal(most, 2);
  });

  t('the budget of an app holds from round to round', async () => {
    await Promise.all(Array.from({ length: 12 }, () => connected('telegram', soon(0))));
    const starts: number[] = [];
    const ask = async (): Promise<Refresh> => {
      starts.push(performance.now());
      return { kind: 'unavailable', reason: '503' };
    };
    // One every 40 ms, in rounds of a few each: a refresh that was unavailable rests.
    const running = watch({ telegram: ask }, { rules: { telegram: { perHour: 90_000 } } });
    await until('all were asked for', () => starts.length >= 12);
    await running.stop();
    assert.equal(starts.length, 12);
    // The first may be late on a busy machine, and then the others follow it closer.
    assert.ok((starts.at(-1) ?? 0) - (starts[0] ?? 0) > (11 * 40) / 2, 'a burst');
  });

  t('one refresh that fails by a defect stops no other, and no log line has a secret', async () => {
    const broken = await connected('bluesky', soon(-60_000));
    const sound = await connected('bluesky', soon(0));
    const { accessToken } = broken.credential.secret;
    const running = watch({
      bluesky: async ({ secret }) => {
        if (secret.accessToken === accessToken) throw new TypeError('a defect');
        return { kind: 'unavailable', reason: `the network said ${secret.accessToken}` };
      },
    });
    const lines = await until('both are in the log', () => {
      const text = readFileSync(logFile, 'utf8');
      return text.includes('a defect') && text.includes('the network said') && text;
    });
    await running.stop();
    for (const token of [broken, sound].flatMap(({ credential }) => Object.values(credential.secret))) {
      assert.ok(!lines.includes(String(token)), 'a token is in the log');
    }
  });

  t('outcomes:before-lapse, outcomes:after-lapse: whoever follows records the lapse once', async () => {
    const { id } = await connected('pinterest', soon(0));
    await mortals.died(await mortals.child('outcomes:before-lapse'));
    assert.deepEqual(await lapsesOf(id), []);
    await mortals.died(await mortals.child('outcomes:after-lapse'));
    assert.equal((await lapsesOf(id)).length, 1);
    const running = watch({ pinterest: async () => assert.fail('a lapsed account was asked for') });
    await until('it is acknowledged', async () => {
      const ending = await credentials.ending('pinterest', later(), 10);
      return ending.length === 0;
    });
    await running.stop();
    assert.equal((await lapsesOf(id)).length, 1);
  });
});
