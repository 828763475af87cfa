/** `network check` as an operator types it, over a strict X; the accounts are connected as a consent leaves them. */
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import type { PlatformAdapter, ReconcileOutcome } from '#contracts/ports/platform.ts';
import { account } from '#domain/account.ts';
import { outcomeUnknown } from '#domain/publish-failures.ts';
import type { Adapters } from '#infra/adapters.ts';
import { liveNetworks } from '#infra/platforms/live.ts';
import { EgressGuard } from '#runtime/egress/guard.ts';
import { GuardedNetworkHttp } from '#runtime/egress/network-http.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { readConfig } from '#runtime/process/config.ts';
import { PublishingHold } from '#runtime/work/publishing-hold.ts';
import type { Admin } from '#services/admin/context.ts';
import { checkNetwork } from '#services/admin/network-check.ts';
import { contextOf, type Operator } from '#services/workflows/provision.ts';
import { problems, startX, type XNetwork } from '#test/support/networks/x/index.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { run } from '#test/support/processes.ts';
import { suite } from '#test/support/suite.ts';
import { withMembers } from '#test/support/with-members.ts';
import { openOperator } from './network-operator.ts';

const key = `v1:${randomBytes(32).toString('base64')}`;

suite('network check', { timeoutMs: 180_000 }, (t) => {
  let network: XNetwork;
  let adapters: Adapters;
  let store: DomainStore;
  let operator: Operator;
  let env: Record<string, string> & { SECRET_KEY: string };
  const workspaceId = randomUUID();
  const clientId = randomUUID();

  t.before(async () => {
    network = await startX();
    const { url } = await preparedDatabase();
    env = {
      ...{ DATABASE_URL: url, SECRET_KEY: key, PRIVATE_TARGETS: '*' },
      ...{ X_API: network.origin, X_CLIENT_ID: 'app-id', X_CLIENT_SECRET: 'app:secret' },
    };
    ({ adapters, operator } = await openOperator(env));
    store = operator.store;
  });
  t.after(async () => {
    await adapters?.close();
    network?.close();
  });

  const connected = async (
    over: Partial<{ network: 'live' | 'sandbox'; platform: 'x' | 'threads'; username: string }> = {},
  ) => {
    const person = network.person(over.username === undefined ? {} : { username: over.username });
    const id = randomUUID();
    const { platform = 'x', network: kind = 'live' } = over;
    const grant = { username: person.username, displayName: null, avatarUrl: null, scopes: [], expiresAt: null };
    const connect = {
      type: 'Connect',
      clientId,
      platform,
      externalId: person.id,
      network: kind,
      inviteId: null,
    } as const;
    const { positions } = operator;
    await execute(store, account, id, { ...connect, ...grant, timezone: null }, contextOf(operator, workspaceId), {
      positions,
    });
    const secret = { ...network.grant(person), accessUntil: new Date(Date.now() + 7_200_000).toISOString() };
    const owner = { accountId: id, workspaceId, clientId, platform };
    assert.equal(await adapters.credentials.keep(owner, { secret, expiresAt: null }), 1);
    return { id, person };
  };
  const typed = (args: string, more: Record<string, string> = {}) =>
    run('services/admin/main.ts', { env: { ...env, ...more }, args: args.split(' ') });
  const postsOf = ({ id }: { readonly id: string }) => network.state.posts.filter(({ personId }) => personId === id);
  const isGone = (postId: string) => network.state.post(postId) === null;

  /** The same without a process of its own, with a person who answers. */
  const asked = async (
    id: string,
    answer: boolean | null,
    as: (adapter: PlatformAdapter) => PlatformAdapter = (adapter) => adapter,
  ) => {
    const config = readConfig(env);
    const http = new GuardedNetworkHttp(new EgressGuard({ privateTargets: ['*'], ownHosts: () => [] }));
    const live = liveNetworks({
      stores: adapters,
      http,
      clock: Date.now,
      config: { ...config, boundaryDeadlineMs: 500 },
    });
    const [notes, questions]: [string[], string[]] = [[], []];
    const admin = {
      ...{ store, operator, signal: new AbortController().signal },
      ...{ publishing: new PublishingHold(adapters.pool, 'on'), sandboxCall: () => null },
      adapterOf: (platform) => {
        const adapter = live.adapters[platform];
        return adapter === undefined ? null : as(adapter);
      },
      confirm: answer === null ? null : async (question) => questions.push(question) > 0 && answer,
      note: (text) => void notes.push(text),
    } satisfies Partial<Admin>;
    const given = { at: () => 'x', flag: (name: string) => (name === 'account' ? id : undefined), has: () => false };
    const ended = await checkNetwork(admin as unknown as Admin, given).then(
      (output) => JSON.stringify(output),
      (error: Error) => error.message,
    );
    return { ended, notes, questions };
  };

  t('publishes one post, says where it is, and deletes it', async () => {
    const { id, person } = await connected();
    const { code, output } = await typed(`network check x --account ${id} --yes`);
    assert.equal(code, 0, output);
    const [post, ...more] = postsOf(person);
    assert.ok(post !== undefined && isGone(post.id));
    assert.equal(more.length, 0);
    const link = `https://x.com/${person.username}/status/${post.id}`;
    assert.match(output, new RegExp(`Published: ${link}\\ndeleted\\n`));
    const mark = /\([0-9a-f]{8}\)/.exec(post.sent)?.[0] ?? '–';
    assert.ok(output.indexOf(mark) < output.indexOf(link), 'the mark is said before the post is out');
    const { rows } = await adapters.pool.query(
      "select 1 from es.events where stream like 'post-%' or stream like 'target%'",
    );
    assert.equal(rows.length, 0);
  });

  t('asks first, and publishes nothing without a yes', async () => {
    const { id, person } = await connected();
    const unasked = await typed(`network check x --account ${id}`);
    assert.equal(unasked.code, 2, unasked.output);
    assert.match(unasked.output, /add --yes/);
    const no = await asked(id, false);
    assert.equal(no.ended, 'Nothing was published.');
    assert.match(
      String(no.questions[0]),
      new RegExp(`^Publish “.*” on x as ${person.username}, and delete it again\\?$`),
    );
    assert.deepEqual(postsOf(person), []);
    assert.match((await asked(id, true)).ended, /"deleted":true/);
  });

  t('names the account that cannot be checked', async () => {
    const { id } = await connected();
    const sandbox = await connected({ network: 'sandbox' });
    const threads = await connected({ platform: 'threads' });
    const cases: readonly [string, number, RegExp][] = [
      [`network check x --account ${randomUUID()} --yes`, 1, /no such account/],
      [`network check x --account acme --yes`, 2, /no id of a account|no id of an account/],
      [`network check bluesky --account ${id} --yes`, 2, /account of x\./],
      [`network check myspace --account ${id} --yes`, 2, /one of x, instagram/],
      [`network check x --yes`, 2, /Missing: --account/],
      [`network check x --account ${sandbox.id} --yes`, 1, /sandbox/],
      [`network check threads --account ${threads.id} --yes`, 1, /npm run doctor -- networks/],
    ];
    for (const [args, code, words] of cases) {
      const ended = await typed(args);
      assert.equal(ended.code, code, `${args}\n${ended.output}`);
      assert.match(ended.output, words);
    }
    const { positions } = operator;
    const lapse = { type: 'RequireReauth', reason: 'it ended' } as const;
    await execute(store, account, id, lapse, contextOf(operator, workspaceId), { positions });
    assert.match((await asked(id, true)).ended, /connected anew/);
  });

  t('says why nothing was published, and shows no control characters', async () => {
    const { id, person } = await connected();
    const answer = { status: 403, body: { detail: 'Not \u001b[2Jpermitted to access this feature', status: 403 } };
    network.script({ route: 'POST /2/tweets', then: { answer } });
    const { ended } = await asked(id, true);
    assert.match(ended, /^Nothing was published\. .*permitted to access this feature/);
    assert.ok(!ended.includes('\u001b'));
    assert.deepEqual(postsOf(person), []);
  });

  t('shows names of the network as text alone', async () => {
    const { id } = await connected({ username: 'acme\u001b[2J\u202eevil' });
    const { ended, notes, questions } = await asked(id, true);
    assert.match(ended, /"deleted":true/);
    assert.doesNotMatch([ended, ...notes, ...questions].join(''), /\p{C}/u);
  });

  t('says where the post is when it could not be deleted', async () => {
    const { id, person } = await connected();
    network.script({ route: 'DELETE /2/tweets/:id', then: { answer: problems.not_permitted } });
    const { ended } = await asked(id, true);
    const [post] = postsOf(person);
    assert.ok(post !== undefined && !isGone(post.id));
    assert.match(
      ended,
      new RegExp(`^The post may still be there: https://x.com/${person.username}/status/${post.id}\n`),
    );
    assert.match(ended, new RegExp(`Open it as ${person.username}, and delete it there\\.$`));
  });

  t('waits for a post that the network accepted and shows later, and says what a network refused', async () => {
    const { id, person } = await connected();
    /** X as a network that looks at posts, once, before it shows or refuses them. */
    const looking = (end: ReconcileOutcome | null) => {
      const seen: unknown[] = [];
      const as = (adapter: PlatformAdapter) =>
        withMembers(adapter, {
          publish: async (request, steps) => {
            assert.equal((await adapter.publish(request, steps)).kind, 'published');
            return { kind: 'accepted', handle: 'h', askAt: new Date().toISOString() };
          },
          reconcile: async (request, boundary, handle) => {
            seen.push(handle);
            if (seen.length === 1) return { kind: 'processing', handle: 'h', askAt: new Date().toISOString() };
            return end ?? adapter.reconcile(request, boundary);
          },
        });
      return { as, seen };
    };
    const shown = looking(null);
    const { ended, notes } = await asked(id, true, shown.as);
    assert.match(ended, /"deleted":true/);
    assert.match(notes.join('\n'), /accepted the post and does not show it yet/);
    assert.deepEqual(shown.seen, ['h', 'h']);
    assert.ok(postsOf(person).every((post) => isGone(post.id)));
    const refused = looking({ kind: 'failed', failure: { ...outcomeUnknown, platformMessage: 'Too dark' } });
    assert.match((await asked(id, true, refused.as)).ended, /refused the post after it had looked at it\..*Too dark/);
  });

  t('finds and deletes a post whose answer was lost, and names the mark where it cannot', async () => {
    const { id, person } = await connected();
    network.script({ route: 'POST /2/tweets', then: 'drop_after' });
    const { ended } = await asked(id, true);
    const [post] = postsOf(person);
    assert.ok(post !== undefined);
    assert.match(ended, /"deleted":true/);
    assert.ok(isGone(post.id));
    network.script({ route: 'POST /2/tweets', then: 'drop_after' });
    network.script({ route: 'GET /2/users/:id/tweets', times: 5, then: { answer: problems.bad_gateway } });
    const unknown = await asked(id, true);
    const lost = postsOf(person)[1];
    const mark = /\([0-9a-f]{8}\)/.exec(lost?.sent ?? '')?.[0] ?? '–';
    assert.match(unknown.ended, /may be out/);
    assert.ok(unknown.ended.includes(mark), unknown.ended);
  });

  t('a check that dies before the deletion has said where its post is', async () => {
    const { id, person } = await connected();
    const died = await typed(`network check x --account ${id} --yes`, {
      POSTLINE_FAULT: 'admin:between-publish-and-removal',
    });
    assert.equal(died.signal, 'SIGKILL');
    const [post] = postsOf(person);
    assert.ok(post !== undefined && !isGone(post.id));
    assert.match(died.output, new RegExp(`Published: https://x.com/${person.username}/status/${post.id}`));
    assert.ok(!died.output.includes('\ndeleted'));
  });
});
