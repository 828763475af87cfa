import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { account } from '#domain/account.ts';
import { testTwinIdOf } from '#domain/ids.ts';
import { siteProofOfTikTok } from '#domain/platforms/index.ts';
import { type TargetCommand, target } from '#domain/post-target/target.ts';
import { metaInbox } from '#infra/platforms/inboxes/meta.ts';
import { sandboxCall, sandboxInboxes } from '#infra/platforms/sandbox/index.ts';
import { leaseKindOfTargets } from '#projections/queries/due-targets.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { Leases } from '#runtime/work/leases.ts';
import { finishNotice } from '#runtime/work/network-notices.ts';
import type { Platform } from '#schemas/common.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { composer, tomorrow } from '#test/support/composing.ts';
import { startWorld } from '#test/support/http.ts';
import { suite } from '#test/support/suite.ts';

const [ofSandbox, ofThreads] = ['the secret of the sandbox', 'the secret of an app of Threads'];
const inboxes = { live: { threads: metaInbox(ofThreads) }, sandbox: sandboxInboxes(ofSandbox) };
const world = await startWorld({ deps: { inboxes } });

type Kind = Parameters<typeof sandboxCall>[2]['kind'];
interface Sent {
  readonly network?: 'sandbox' | 'live';
  readonly platform?: Platform;
  readonly secret?: string;
  readonly now?: number;
}

const at = (path: string, init?: RequestInit) => fetch(`${world.origin()}${path}`, { redirect: 'manual', ...init });

/** As the network makes the call. */
const said = async (kind: Kind, person: string, { network = 'sandbox', platform = 'threads', ...sent }: Sent = {}) => {
  const { secret = network === 'sandbox' ? ofSandbox : ofThreads, now = Date.now() } = sent;
  const call = sandboxCall(platform, secret, { kind, person, now });
  assert.ok(call !== null);
  const path = [network === 'sandbox' ? '/network/sandbox' : '/network', platform, call.topic]
    .filter(Boolean)
    .join('/');
  const answer = await at(path, { method: 'POST', headers: call.headers, body: call.body });
  return { status: answer.status, text: await answer.text(), headers: answer.headers };
};

const notices = async () =>
  (
    await world.pool.query<{ network: string; platform: string; kind: string; person: string | null }>(
      'select network, platform, kind, person from ops.network_notices order by received_at, id',
    )
  ).rows;

/** Without what differs from call to call. */
const plain = (text: string): string => text.replaceAll(/"correlationId":"[^"]*"/g, '');

suite('calls of networks', { timeoutMs: 120_000 }, (t) => {
  t.after(() => world.close());

  t('what a network says of a person is kept once, and answered alike whether anybody knows them', async () => {
    const now = Date.now();
    const first = await said('deauthorized', '17841400000000001', { now });
    assert.deepEqual([first.status, first.text], [200, '{}']);
    assert.equal(first.headers.get('cache-control'), 'no-store');
    const repeat = await said('deauthorized', '17841400000000001', { now: now + 1 });
    assert.deepEqual([repeat.status, repeat.text], [200, '{}']);
    await said('deauthorized', '17841400000000001', { now: now - 60_000 });
    const { length } = (await notices()).filter(({ person }) => person === '17841400000000001');
    assert.ok(length === 2 || length === 3, 'the two calls may lie on both sides of a second');
    await said('deauthorized', '-000tiktok', { platform: 'tiktok' });
    await said('deauthorized', '17841400000000002', { network: 'live' });
    assert.deepEqual((await notices()).slice(-2), [
      { network: 'sandbox', platform: 'tiktok', kind: 'deauthorized', person: '-000tiktok' },
      { network: 'live', platform: 'threads', kind: 'deauthorized', person: '17841400000000002' },
    ]);
  });

  t('what no network signed gets the answer of an address that is not there, and keeps nothing', async () => {
    const before = await notices();
    const nowhere = await at('/nowhere', { method: 'POST' });
    const expected = [nowhere.status, plain(await nowhere.text())];
    const unsigned: readonly [string, RequestInit][] = [
      ['/network/threads', { method: 'POST' }],
      ['/network/threads/delete', { method: 'POST', body: 'signed_request=a.b' }],
      ['/network/x/delete', { method: 'POST', body: 'signed_request=a.b' }],
      ['/network/constructor/delete', { method: 'POST', body: '{}' }],
      ['/network/sandbox/x', { method: 'POST', body: '{}' }],
      ['/network/sandbox/tiktok', { method: 'POST', body: '{}' }],
      ['/network/deletion/delete', { method: 'POST', body: '{}' }],
    ];
    for (const [path, init] of unsigned) {
      const answer = await at(path, init);
      assert.deepEqual([answer.status, plain(await answer.text()).replaceAll(path, '/nowhere')], expected, path);
    }
    for (const path of ['/network/threads', '/network/sandbox/linkedin', '/network/sandbox/linkedin?challengeCode=x']) {
      assert.equal((await at(path)).status, 404, path);
    }
    const other = await said('delete_data', '1', { network: 'live', secret: ofSandbox });
    assert.deepEqual([other.status, plain(other.text)], expected, 'the secret of another app');
    assert.deepEqual(await notices(), before);
  });

  t('a challenge is answered at once', async () => {
    const answer = await at('/network/sandbox/linkedin?challengeCode=890e4665-4dfe-4ab1-b689-ed553bceeed0');
    const body = (await answer.json()) as { readonly challengeResponse: string };
    assert.match(body.challengeResponse, /^[0-9a-f]{64}$/);
    assert.equal(answer.headers.get('content-type'), 'application/json; charset=utf-8');
  });

  t('a body beyond the bound is refused before it is read', async () => {
    const answer = await at('/network/threads/delete', { method: 'POST', body: 'a'.repeat(65_537) });
    assert.equal(answer.status, 413);
    const most = await at('/network/threads/delete', { method: 'POST', body: 'a'.repeat(65_536) });
    assert.equal(most.status, 404);
  });

  t('a deletion has one page from the first call on, which names nobody and says when it is done', async () => {
    const now = Date.now();
    const person = '17841499999999999';
    const answers = [];
    for (const _ of [1, 2])
      answers.push(JSON.parse((await said('delete_data', person, { network: 'live', now })).text));
    assert.deepEqual(answers[0], answers[1]);
    const { url, confirmation_code: code } = answers[0] as Readonly<Record<string, string>>;
    assert.match(code ?? '', /^[0-9a-f]{48}$/);
    assert.equal(url, `${world.origin()}/network/deletion/${code}`);
    const page = async () => {
      const answer = await fetch(url ?? '');
      return { status: answer.status, text: await answer.text(), headers: answer.headers };
    };
    const waiting = await page();
    assert.equal(waiting.status, 200);
    assert.match(waiting.text, /under way/);
    assert.match(waiting.headers.get('content-security-policy') ?? '', /default-src 'none'/);
    const { rows } = await world.pool.query('select id from ops.network_notices where code = $1', [code]);
    await finishNotice(world.pool, rows[0].id);
    const done = await page();
    assert.match(done.text, /It was done on <time/);
    for (const { text } of [waiting, done]) assert.ok(!text.includes(person) && !text.includes('hreads'));
    assert.equal((await notices()).at(-1)?.person, null, 'nothing of the person is kept');
    const again = await said('delete_data', person, { network: 'live', now });
    assert.equal(JSON.parse(again.text).confirmation_code, code, 'the network may ask again for a long time');
    assert.match((await page()).text, /It was done/, 'and nothing is done twice');
    for (const wrong of ['0'.repeat(48), 'x', "' or true"]) {
      assert.equal((await at(`/network/deletion/${encodeURIComponent(wrong)}`)).status, 404);
    }
  });

  t('the log says that a network called, and neither who was meant nor a code', async () => {
    const text = world.lines.join('');
    assert.match(text, /"msg":"a network called"/);
    assert.match(text, /"reason":"the app secret did not sign it"/);
    const { rows } = await world.pool.query<{ code: string }>(
      'select code from ops.network_notices where code is not null',
    );
    for (const secret of ['17841499999999999', '-000tiktok', ofThreads, ofSandbox, ...rows.map(({ code }) => code)]) {
      assert.ok(!text.includes(secret), secret);
    }
  });

  t(
    'a network that says something of a post has the account’s open questions asked at once, and no others',
    async () => {
      const [mine, others] = [
        await composer(world, ['facebook', 'linkedin'], { username: 'told-of' }),
        await composer(world, ['linkedin'], { username: 'not-told-of' }),
      ];
      const { tester } = world;
      const processing = async (by: typeof mine, platform: Platform): Promise<string> => {
        const body = by.body({ targets: { mode: 'group', clientId: by.clientId, platforms: [platform] } });
        const made = await tester.post('/posts', { ...body, schedule: { type: 'at', scheduledAt: tomorrow() } });
        assert.equal(made.status, 200, made.text);
        const [{ id = '' } = {}] = made.data.targets as readonly { readonly id: string }[];
        const late = '2099-01-01T00:00:00.000Z';
        const claim = { attempt: 1, takeover: 0 };
        for (const command of [
          { type: 'Start', now: late },
          { type: 'Checkpoint', ...claim, step: 'boundary', data: {}, deadline: late },
          { type: 'RecordAccepted', ...claim, handle: { id: '1' }, askAt: late, until: '2099-01-01T06:00:00.000Z' },
        ] as readonly TargetCommand[]) {
          const context = contextOf(world.operator, testTwinIdOf(world.workspaceId));
          await execute(world.store, target, id, command, context, { partitionKey: made.data.id });
        }
        return id;
      };
      const ids = [
        await processing(mine, 'linkedin'),
        await processing(mine, 'facebook'),
        await processing(others, 'linkedin'),
      ];
      await world.settled();
      const leases = new Leases({ pool: world.pool, kind: leaseKindOfTargets, ttlMs: 60_000 });
      for (const lease of await leases.acquire(ids)) lease.release({ notBeforeMs: 3_600_000 });
      await leases.close();
      const resting = async () => {
        const sql = 'select id from ops.work_leases where kind = $1 and not_before > now() and id = any($2)';
        const { rows } = await world.pool.query<{ id: string }>(sql, [leaseKindOfTargets, ids]);
        return ids.map((id) => rows.some((row) => row.id === id));
      };
      assert.deepEqual(await resting(), [true, true, true]);
      const { state } = await world.store.load(account, mine.accounts.linkedin ?? '');
      assert.ok(state.status !== 'none');
      const before = await notices();
      assert.equal((await said('post_state', state.externalId, { platform: 'linkedin' })).status, 200);
      assert.deepEqual(await resting(), [false, true, true]);
      assert.deepEqual(await notices(), before, 'nothing is kept of a post');
      assert.equal((await said('post_state', randomUUID(), { platform: 'linkedin' })).status, 200);
    },
  );
});

suite('calls of networks in great number', (t) => {
  t('cost an address its requests, as every page does', async () => {
    const narrow = await startWorld({ rate: { perMinute: 60, burst: 5 }, deps: { inboxes } });
    try {
      const statuses = [];
      for (let n = 0; n < 7; n += 1) {
        const answer = await fetch(`${narrow.origin()}/network/threads/delete`, { method: 'POST', body: 'a=b' });
        statuses.push(answer.status);
      }
      assert.deepEqual(statuses, [404, 404, 404, 404, 404, 429, 429]);
    } finally {
      await narrow.close();
    }
  });

  t(
    'are bounded for each network too, whatever its addresses; no stranger uses that up, and no other network',
    async () => {
      const wide = await startWorld({ rate: { perMinute: 600_000, burst: 10_000 }, deps: { inboxes } });
      try {
        const tell = async (platform: Platform, secret: string, person: string) => {
          const call = sandboxCall(platform, secret, { kind: 'deauthorized', person, now: Date.now() });
          const path = `/network/sandbox/${platform}${call?.topic == null ? '' : `/${call.topic}`}`;
          const init = { method: 'POST', headers: call?.headers ?? {}, body: call?.body ?? '' };
          const answer = await fetch(wide.origin() + path, init);
          await answer.arrayBuffer();
          return answer;
        };
        for (let n = 0; n < 400; n += 1) assert.equal((await tell('threads', 'another secret', '1')).status, 404);
        const statuses: number[] = [];
        for (let n = 0; n < 301; n += 1) statuses.push((await tell('threads', ofSandbox, `1${n}`)).status);
        assert.deepEqual([statuses.slice(0, 300).every((one) => one === 200), statuses[300]], [true, 429]);
        assert.match((await tell('threads', ofSandbox, '1')).headers.get('retry-after') ?? '', /^\d+$/);
        assert.equal((await tell('tiktok', ofSandbox, '-000abc')).status, 200);
        const { rows } = await wide.pool.query('select count(*)::int as kept from ops.network_notices');
        assert.equal(rows[0].kept, 301, 'what was refused is not kept: the network says it again');
      } finally {
        await wide.close();
      }
    },
  );
});

suite('files by which a network sees that the host is the operator’s', (t) => {
  t('stand at the root and where the addresses of media files begin, and nowhere else', async () => {
    const proofs = ['MrYmGFtSFSb0FMQcrgGYRdJnZDueUoXT', 'W80hyQC60hi75H7MTNlTpbTyCipci1gZ'].map(siteProofOfTikTok);
    const proving = await startWorld({ deps: { siteProofs: proofs } });
    try {
      const { blobs } = proving.deps;
      const expiresAt = new Date(Date.now() + 60_000);
      const media = await blobs.presignGet('w/a/picture', { contentType: 'image/jpeg', expiresAt });
      const begins = media.slice(0, media.indexOf('w/a/picture'));
      for (const { name, text } of proofs) {
        for (const place of [`${proving.origin()}/`, begins]) {
          const answer = await fetch(place + name, { redirect: 'manual' });
          assert.deepEqual([answer.status, await answer.text()], [200, text], place);
          assert.equal(answer.headers.get('content-type'), 'text/plain; charset=utf-8');
        }
      }
      for (const wrong of [
        'tiktok.txt',
        siteProofOfTikTok('anotherToken').name,
        `${proofs[0]?.name}/`,
        proofs[0]?.name.toLowerCase(),
      ]) {
        assert.equal((await fetch(`${proving.origin()}/${wrong}`)).status, 404, wrong);
      }
      assert.equal(proofs[0]?.name, 'tiktokMrYmGFtSFSb0FMQcrgGYRdJnZDueUoXT.txt');
      assert.equal(proofs[0]?.text, 'tiktok-developers-site-verification=MrYmGFtSFSb0FMQcrgGYRdJnZDueUoXT');
    } finally {
      await proving.close();
    }
  });
});
