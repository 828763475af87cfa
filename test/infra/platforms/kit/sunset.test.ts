/** A network of the kit that answers 426 to a version of its API. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { NetworkClient } from '#infra/platforms/kit/client.ts';
import { beforeBoundary, behindBoundary } from '#infra/platforms/kit/errors.ts';
import type { Kit } from '#infra/platforms/kit/tables.ts';
import { tables as ofX } from '#infra/platforms/x/tables.ts';
import { EgressGuard } from '#runtime/egress/guard.ts';
import { GuardedNetworkHttp } from '#runtime/egress/network-http.ts';
import { MemoryAppLimits } from '#test/support/networks/memory-app-limits.ts';
import { MemoryCredentials } from '#test/support/networks/memory-credentials.ts';
import { suite } from '#test/support/suite.ts';

suite('a version that a network of the kit has ended', (t) => {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const version = String(request.headers['api-version']);
    asked.push(`${request.method} ${version}`);
    const isOver = version === '202511';
    response.writeHead(isOver ? 426 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(isOver ? { detail: `Requested version ${version} is not active` } : { data: {} }));
  });
  const credentials = new MemoryCredentials();
  const appLimits = new MemoryAppLimits();
  const subject = { accountId: randomUUID(), targetId: null };
  const within = () => AbortSignal.timeout(5_000);
  let api = '';

  t.before(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    api = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const owner = {
      accountId: subject.accountId,
      workspaceId: randomUUID(),
      clientId: randomUUID(),
      platform: 'x',
    } as const;
    const until = new Date(Date.now() + 3_600_000).toISOString();
    await credentials.keep(owner, { secret: { accessToken: 'token', accessUntil: until }, expiresAt: null });
  });
  t.after(() => server.close());

  const clientOf = (version: string): NetworkClient => {
    const http = new GuardedNetworkHttp(new EgressGuard({ privateTargets: ['*'], ownHosts: () => [] }));
    const kit: Kit = {
      ...{ http, credentials, appLimits, clock: Date.now },
      tables: {
        ...ofX,
        headers: { ...ofX.headers, 'api-version': '{version}' },
        errors: [{ status: 426, means: 'sunset' }, ...ofX.errors],
      },
      app: { id: 'app', secret: null, addresses: { api }, version, monthlyReads: null },
    };
    return new NetworkClient(kit);
  };

  t(
    'is said of the network on both sides of the boundary, rests that version alone, and makes no post unknown',
    async () => {
      const [old, newer] = [clientOf('202511'), clientOf('202608')];
      const open = await old.open(subject, within());
      assert.ok(open.kind === 'open');
      const post = { method: 'POST', path: '/2/tweets', json: {} } as const;
      const answer = await old.once(open, subject, post, within());
      assert.ok(answer.kind === 'refused', answer.kind);
      for (const outcome of [behindBoundary(answer, Date.now()), beforeBoundary(answer, Date.now())]) {
        const { code, actor, retryable, platformMessage } = outcome.failure;
        assert.deepEqual(
          [outcome.kind, code, actor, retryable],
          ['rate_limited', 'api_version_ended', 'service', true],
        );
        assert.equal(platformMessage, 'Requested version 202511 is not active');
      }
      // Nothing else of this version leaves, figures included, and the newer one is not held back by it.
      const before = asked.length;
      const read = { method: 'GET', path: '/2/tweets' } as const;
      for (const rested of [await old.call(subject, read, within()), await old.open(subject, within())]) {
        assert.ok(rested.kind === 'resting', rested.kind);
        assert.equal(beforeBoundary(rested, Date.now()).failure.code, 'api_version_ended');
      }
      assert.equal(asked.length, before);
      assert.equal((await newer.call(subject, read, within())).kind, 'ok');
      assert.deepEqual(asked, ['POST 202511', 'GET 202608']);
    },
  );
});
