/** The adapter of X before answers that X does not document: of proxies, cut ones, and ones that only half say something. */
import assert from 'node:assert/strict';
import type { NetworkCall, NetworkHttp, NetworkResult } from '#contracts/ports/network-http.ts';
import { RecordedSteps } from '#contracts/ports/platform.suite.ts';
import { XAdapter } from '#test/support/networks/x/adapter.ts';
import { type XWorld, xWorld } from '#test/support/networks/x/world.ts';
import { suite } from '#test/support/suite.ts';

const html = '<html><body>Welcome to the hotel</body></html>';
const deep = `{"errors":[{"code":${'['.repeat(10_000)}1${']'.repeat(10_000)}}]}`;

suite('x before hostile answers', (t) => {
  let world: XWorld;
  t.before.each(async () => {
    world = await xWorld();
  });
  t.after.each(() => world.network.close());

  /** X, whose answers to one route are others. What is sent there reaches X first where `isMade`. */
  const behind = (isOf: (call: NetworkCall) => boolean, said: Partial<NetworkResult> & object, isMade = false) => {
    const calls: NetworkCall[] = [];
    const http: NetworkHttp = {
      send: async (call, signal) => {
        if (!isOf(call)) return world.http.send(call, signal);
        calls.push(call);
        if (isMade) await world.http.send(call, signal);
        return { kind: 'answered', status: 200, headers: {}, body: Buffer.from(''), ...said } as NetworkResult;
      },
    };
    return { adapter: new XAdapter({ ...world.options, http }), calls };
  };
  const isCreate = ({ method, url }: NetworkCall) => method === 'POST' && url.endsWith('/2/tweets');
  const isList = ({ url }: NetworkCall) => /\/2\/users\/\d+\/tweets/.test(url);
  const answer = (status: number, body: string) => ({ status, body: Buffer.from(body) });

  t('a post that may be out is never said to be none', async () => {
    const answers: readonly (Partial<NetworkResult> & object)[] = [
      ...['', '{}', '[]', 'null', html, '{"data":{"id":"17', '{"data":{"id":17}}'].map((body) => answer(201, body)),
      ...['{"data":{"id":"x"}}', '{"data":[{"id":"17"}]}', deep].map((body) => answer(200, body)),
      ...[204, 205, 300, 301, 302, 304, 307, 308].map((status) => answer(status, html)),
      ...[408, 500, 502, 503, 504, 520, 599, 999].map((status) => answer(status, html)),
      // The API of X answers in JSON: a page is of a server in between, and the answer of X may be behind it.
      ...[400, 403, 404, 405, 407, 409, 410, 421, 425, 499].map((status) => answer(status, html)),
      ...[400, 403].map((status) => answer(status, '{"title":"Forbi')),
      answer(503, '{"title":"duplicate content","status":403}'),
      { kind: 'silent', reason: 'connection_lost' },
    ];
    for (const said of answers) {
      const { adapter, calls } = behind(isCreate, said, true);
      const request = world.request(await world.account(), { content: crypto.randomUUID() });
      const outcome = await adapter.publish(request, new RecordedSteps(request, adapter.boundaryDeadlineMs));
      const what = 'body' in said ? `${said.status} ${said.body}`.slice(0, 80) : String(said.kind);
      assert.deepEqual([outcome.kind, calls.length], ['unknown', 1], what);
    }
  });

  t('what turns a call away before X reads it has made nothing, in whatever words', async () => {
    for (const [status, kind] of [
      [401, 'failed'],
      [413, 'failed'],
      [429, 'rate_limited'],
    ] as const) {
      const { adapter } = behind(isCreate, answer(status, html));
      const request = world.request(await world.account());
      const outcome = await adapter.publish(request, new RecordedSteps(request, adapter.boundaryDeadlineMs));
      assert.equal(outcome.kind, kind, String(status));
    }
  });

  t('a list that X does not show is no proof that a post is not there', async () => {
    const { outcome, steps, request } = await (async () => {
      const lost = world.request(await world.account());
      world.network.script({ route: 'POST /2/tweets', then: 'drop_after' });
      return { ...(await world.publish(lost)), request: lost };
    })();
    assert.equal(outcome.kind, 'unknown');
    const suspended = '{"errors":[{"type":"https://api.twitter.com/2/problems/resource-not-found","detail":"No."}]}';
    for (const body of ['', '{}', html, '[]', '{"data":[{"id":"1', suspended, '{"meta":{}}', deep]) {
      const { adapter } = behind(isList, answer(200, body));
      assert.equal((await adapter.reconcile(request, steps.crossed)).kind, 'undecided', body.slice(0, 80));
    }
    const none = behind(isList, answer(200, '{"meta":{"result_count":0}}'));
    assert.equal((await none.adapter.reconcile(request, steps.crossed)).kind, 'absent');
    assert.equal((await world.adapter.reconcile(request, steps.crossed)).kind, 'present');
  });

  t('figures of an account that the answer does not have are no figures', async () => {
    const account = await world.account();
    const isMe = ({ url }: NetworkCall) => url.includes('/2/users/me');
    for (const body of ['', html, '{}', '{"errors":[{"detail":"Suspended."}]}', '{"data":[]}', deep]) {
      const { adapter } = behind(isMe, answer(200, body));
      const { kind } = await adapter.fetchAccountInsights('x', account, AbortSignal.timeout(5_000));
      assert.equal(kind, 'unavailable', body.slice(0, 80));
    }
  });

  t('a refusal that nests ten thousand deep is a refusal', async () => {
    const isRead = ({ url }: NetworkCall) => isList({ url } as NetworkCall) || url.includes('/2/tweets?');
    const { adapter } = behind(isRead, answer(400, deep));
    const account = await world.account();
    const posts = [
      { externalId: '17', hasVideo: false, publishedAt: new Date(world.network.state.now()).toISOString() },
    ];
    for await (const one of adapter.fetchPostInsights('x', account, posts as never, AbortSignal.timeout(5_000))) {
      assert.equal(one.kind, 'unavailable');
    }
  });
});
