import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { credentialOf } from '#contracts/ports/credentials.suite.ts';
import { account } from '#domain/account.ts';
import { type TargetCommand, target } from '#domain/post-target/target.ts';
import { PostgresCredentials } from '#infra/postgres/credentials.ts';
import { PostgresDataKeys } from '#infra/postgres/data-keys.ts';
import { view } from '#projections/shapes.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import type { Platform } from '#schemas/common.ts';
import { Resting } from '#services/outcomes/resting.ts';
import { type Revokers, runRevocations } from '#services/outcomes/revocations.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { PublishingWorld } from '#test/support/publishing.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

suite('credentials of disconnected accounts', { timeoutMs: 60_000 }, (t) => {
  let world: PublishingWorld;
  let clientId: string;
  let credentials: PostgresCredentials;
  t.before(async () => {
    world = await PublishingWorld.open((await preparedDatabase()).url);
    const keys = new PostgresDataKeys({
      pool: world.pool,
      secrets: new Secrets(`v1:${randomBytes(32).toString('base64')}`),
    });
    credentials = new PostgresCredentials({ pool: world.pool, keys });
    clientId = await world.client();
  });
  t.after(() => world?.close());

  const keep = (accountId: string, platform: Platform, more: { readonly grant?: string } = {}) =>
    credentials.keep(
      { accountId, workspaceId: world.workspaceId, clientId, platform },
      credentialOf({ expiresAt: null, ...more }),
    );
  const disconnected = async (platform: Platform, more: { readonly grant?: string } = {}): Promise<string> => {
    const { id } = await world.connect(clientId, platform);
    await keep(id, platform, more);
    await disconnect(id);
    return id;
  };
  const disconnect = async (id: string): Promise<void> => {
    // Events count milliseconds: a person takes longer than one.
    await world.pool.query(
      `update ops.network_credentials set kept_at = now() - interval '1 second' where account_id = $1`,
      [id],
    );
    await execute(world.store, account, id, { type: 'Disconnect', reason: 'left' }, world.context());
    await until('the read model', async () => {
      const { rows } = await world.pool.query('select status from read.accounts where id = $1', [id]);
      return rows[0]?.status === 'disconnected';
    });
  };
  const rounds = (revokers: Revokers, more: { readonly now?: () => number } = {}) =>
    world.run((signal) =>
      runRevocations(
        {
          ...{ credentials, revokers, logger: world.logger, pool: world.pool, store: world.store, now: Date.now },
          ...{ config: { sweepIntervalMs: 50, leaseTtlMs: 900 }, ...more },
        },
        new Resting(),
        signal,
      ),
    );

  t('the network is asked once, then they are destroyed; a network without a way to revoke too', async () => {
    const [one, other] = [await disconnected('x'), await disconnected('threads')];
    const asked: string[] = [];
    const running = rounds({
      x: async (_, accountId) => {
        asked.push(accountId);
        return 'revoked';
      },
    });
    for (const id of [one, other]) {
      await until('they are destroyed', async () => (await credentials.read(id)) === null);
    }
    await running.stop();
    assert.deepEqual(asked, [one]);
  });

  t('of the accounts of one login the network is asked with the last, and those that stay connected stay', async () => {
    const grant = randomUUID();
    const stays = await world.connect(clientId, 'facebook');
    await keep(stays.id, 'facebook', { grant });
    const gone = [await disconnected('facebook', { grant }), await disconnected('facebook', { grant })];
    const asked: string[] = [];
    const facebook: Revokers[Platform] = async (_, accountId) => {
      asked.push(accountId);
      return 'revoked';
    };
    const running = rounds({ facebook });
    for (const id of gone) await until('it is destroyed', async () => (await credentials.read(id)) === null);
    await running.stop();
    assert.deepEqual(asked, [], 'a revocation would have ended the account that stays');
    assert.notEqual(await credentials.read(stays.id), null);
    const last = [await disconnected('facebook', { grant }), await disconnected('facebook', { grant })];
    await credentials.destroy(stays.id);
    const later = rounds({ facebook });
    for (const id of last) await until('it is destroyed', async () => (await credentials.read(id)) === null);
    await later.stop();
    assert.equal(asked.length, 1);
    assert.ok(last.includes(asked[0] ?? ''));
  });

  t('what a new consent gave is left alone, although the account is not connected again yet', async () => {
    const id = await disconnected('bluesky');
    await credentials.destroy(id);
    await keep(id, 'bluesky');
    const witness = await disconnected('x');
    const running = rounds({ bluesky: async () => assert.fail('revoked'), x: async () => 'revoked' });
    await until('a round has ended', async () => (await credentials.read(witness)) === null);
    await running.stop();
    assert.notEqual(await credentials.read(id), null);
    // A consent that came to nothing for an hour.
    await world.pool.query(
      `update ops.network_credentials set kept_at = now() - interval '61 minutes' where account_id = $1`,
      [id],
    );
    const later = rounds({ bluesky: async () => 'revoked' });
    await until('it is destroyed', async () => (await credentials.read(id)) === null);
    await later.stop();
  });

  t('a network that does not answer is asked again; after a day they are destroyed without it', async () => {
    const id = await disconnected('linkedin');
    let asked = 0;
    const silent: Revokers = {
      linkedin: async () => {
        asked += 1;
        return 'unavailable';
      },
    };
    const witness = await disconnected('x');
    const running = rounds(silent);
    await until('a round has ended', async () => asked > 0 && (await credentials.read(witness)) === null);
    await running.stop();
    assert.notEqual(await credentials.read(id), null);
    const nextDay = rounds(silent, { now: () => Date.now() + 90_000_000 });
    await until('they are destroyed', async () => (await credentials.read(id)) === null);
    await nextDay.stop();
  });

  t('a silent network holds no other, and the accounts of a workspace hold no other workspace', async () => {
    const many = await Promise.all(Array.from({ length: 4 }, () => disconnected('pinterest')));
    const other = await disconnected('pinterest');
    const [foreign, witness] = [randomUUID(), await disconnected('x')];
    await world.pool.query('update ops.network_credentials set workspace_id = $2 where account_id = $1', [
      other,
      foreign,
    ]);
    const { promise: answer, resolve } = Promise.withResolvers<'revoked'>();
    const asked: string[] = [];
    const running = rounds({
      x: async () => 'revoked',
      pinterest: async (_, accountId) => {
        asked.push(accountId);
        return accountId === other ? 'revoked' : answer;
      },
    });
    for (const id of [witness, other]) {
      await until('it is destroyed', async () => (await credentials.read(id)) === null);
    }
    await until('two are asked at once', () => many.filter((id) => asked.includes(id)).length === 2);
    assert.equal(asked.length, 3, 'a workspace has two at once');
    resolve('revoked');
    for (const id of many) await until('it is destroyed', async () => (await credentials.read(id)) === null);
    await running.stop();
  });

  t(
    'they are kept while a call is under way, or the network looks at a post, and destroyed once that is settled',
    async () => {
      const facebook = async (): Promise<string> => (await world.connect(clientId, 'facebook')).id;
      const [called, looked, leased] = [await facebook(), await facebook(), await facebook()];
      const dueAt = Date.now() - 1_000;
      const targets = await Promise.all(
        [called, looked, leased].map(async (id) => {
          const { targetIds } = await world.schedule([{ id, clientId, platform: 'facebook' }], { dueAt });
          return targetIds[0] ?? '';
        }),
      );
      const [calling = '', looking = '', working = ''] = targets;
      const tell = async (id: string, ...commands: readonly TargetCommand[]) => {
        const state = await world.target(id);
        assert.ok(state.status !== 'none');
        const options = { partitionKey: state.common.postId };
        for (const command of commands) await execute(world.store, target, id, command, world.context(), options);
      };
      const now = () => new Date().toISOString();
      const [soon, later] = [30_000, 3_600_000].map((ms) => new Date(Date.now() + ms).toISOString());
      const claim = { attempt: 1, takeover: 0 };
      const start = { type: 'Start', now: now() } as const;
      const cross = { ...claim, type: 'Checkpoint', step: 'boundary', data: {}, deadline: soon ?? '' } as const;
      const accepted = {
        ...claim,
        type: 'RecordAccepted',
        handle: 'h',
        askAt: soon ?? '',
        until: later ?? '',
      } as const;
      await tell(calling, start, cross);
      await tell(looking, start, cross, accepted);
      // A worker has begun with this one, and its row does not show it yet.
      await world.pool.query(
        `insert into ops.work_leases (kind, id, holder, epoch, until) values ('target', $1, 'w', 1, now() + interval '1 hour')`,
        [working],
      );
      await until('the rows are there', async () => {
        const { rowCount } = await world.pool.query(
          `select from ${view('post_targets')} where id = any($1) and status in ('pending', 'publishing', 'processing')`,
          [targets],
        );
        return rowCount === 3;
      });
      for (const id of [called, looked, leased]) {
        await keep(id, 'facebook');
        await disconnect(id);
      }
      const witness = await disconnected('facebook');
      const running = rounds({ facebook: async () => 'revoked' });
      const gone = (id: string) => until('it is destroyed', async () => (await credentials.read(id)) === null);
      await gone(witness);
      for (const id of [called, looked, leased]) assert.notEqual(await credentials.read(id), null);
      const there = { externalId: 'e1', permalink: null, publishedAt: now() };
      await tell(calling, { ...claim, type: 'RecordPublished', ...there });
      await tell(looking, { type: 'Settle', by: 'reconcile', now: now(), outcome: { kind: 'published', ...there } });
      await world.pool.query('delete from ops.work_leases where id = $1', [working]);
      for (const id of [called, looked, leased]) await gone(id);
      await running.stop();
    },
  );

  t('a target that nobody works on for a day keeps no credentials', async () => {
    const { id } = await world.connect(clientId, 'facebook');
    const { targetIds } = await world.schedule([{ id, clientId, platform: 'facebook' }]);
    const [targetId = ''] = targetIds;
    await until('its row is that old', async () => {
      const { rowCount } = await world.pool.query(
        `update ${view('post_targets')} set status = 'processing', processing_until = now() - interval '25 hours' where id = $1`,
        [targetId],
      );
      return rowCount === 1;
    });
    await keep(id, 'facebook');
    await disconnect(id);
    const running = rounds({ facebook: async () => 'revoked' });
    await until('it is destroyed', async () => (await credentials.read(id)) === null);
    await running.stop();
  });

  t('credentials whose account never came to be are taken back after an hour', async () => {
    const [old, young, witness] = [randomUUID(), randomUUID(), await disconnected('x')];
    for (const id of [old, young]) await keep(id, 'x');
    await world.pool.query(
      `update ops.network_credentials set kept_at = now() - interval '61 minutes' where account_id = $1`,
      [old],
    );
    const asked: string[] = [];
    const running = rounds({
      x: async (_, accountId) => {
        asked.push(accountId);
        return 'revoked';
      },
    });
    for (const id of [old, witness]) {
      await until('it is destroyed', async () => (await credentials.read(id)) === null);
    }
    await running.stop();
    assert.deepEqual(asked.sort(), [old, witness].sort());
    assert.notEqual(await credentials.read(young), null);
    await credentials.destroy(young);
  });

  t('the credentials of an account that the read model lacks are left alone', async () => {
    const { id } = await world.connect(clientId, 'x');
    await keep(id, 'x');
    await until('the read model', async () => {
      const { rowCount } = await world.pool.query('delete from read.accounts where id = $1', [id]);
      return rowCount === 1;
    });
    await world.pool.query(
      `update ops.network_credentials set kept_at = now() - interval '2 hours' where account_id = $1`,
      [id],
    );
    const witness = await disconnected('x');
    const running = rounds({ x: async (_, asked) => (asked === id ? assert.fail('revoked') : 'revoked') });
    await until('a round has ended', async () => (await credentials.read(witness)) === null);
    await running.stop();
    assert.notEqual(await credentials.read(id), null);
  });
});
