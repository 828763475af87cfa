import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { apikey } from '#domain/apikey.ts';
import { testTwinIdOf } from '#domain/ids.ts';
import { type ReportCommand, report } from '#domain/report.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { scopes as allScopes } from '#schemas/apikey.ts';
import { tools } from '#services/mcp/tools/index.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { composer, tomorrow } from '#test/support/composing.ts';
import type { World } from '#test/support/http.ts';
import { callMessage, connect, mcpWorld, send } from '#test/support/mcp.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

/** Every tool passes every wall: the tools are those that are listed, and a new one needs its arguments here. */

type Args = Readonly<Record<string, unknown>>;

interface Sample {
  /** Good arguments, about the client Closed alone. */
  readonly args: Args;
  /** What only Closed has, and no stranger may be told. */
  readonly secrets: readonly string[];
}

/** Tools that are about no client, and may answer anybody of their own. */
const ofNobody = new Set(['whoami', 'create_client']);

/** Of these a call without an id is no call about another client: they list what the caller may see. */
const isRefused = ({ text }: { readonly text: string }): boolean => text.includes('"isError":true');

suite('the doors of all tools', (t) => {
  let world: World;
  let samples: Readonly<Record<string, Args>> = {};
  let secrets: readonly string[] = [];
  let open = '';

  t.before(async () => {
    world = await mcpWorld();
    open = (await composer(world, ['x'], { name: 'Open' })).clientId;
    const closed = await composer(world, ['x', 'linkedin'], { name: 'Closed Secret' });
    const { clientId } = closed;
    await world.tester.patch(`/clients/${clientId}`, { approvalRequired: true });
    const made = async (path: string, body: object) => {
      const { data, text } = await world.tester.post(path, body);
      assert.equal(typeof data.id, 'string', text);
      return data as Readonly<Record<string, unknown>> & { readonly id: string };
    };
    const held = await made('/posts', closed.body({ content: 'The closed word.' }));
    const draft = await made('/posts', closed.body({ content: 'The closed draft.', saveDraft: true }));
    const campaign = await made('/campaigns', { name: 'Closed campaign', clientId });
    const file = await made('/media/import-url', {
      url: 'https://cdn.example/closed.png',
      name: 'closed.png',
      clientId,
    });
    const reportId = randomUUID();
    const definition: ReportCommand = {
      type: 'Define',
      definition: {
        ...({ name: 'Closed report', kind: 'client', window: 'last_30_days' } as const),
        ...{ formats: ['csv'], schedule: null, filters: { clientId, socialAccountId: null, platform: null } },
      },
    };
    await execute(
      world.store,
      report,
      reportId,
      definition,
      contextOf(world.operator, testTwinIdOf(world.workspaceId)),
    );
    await world.settled();
    const postId = held.id;
    const approvalId = String(held.approvalId);
    const { contentHash } = (await world.tester.get(`/approvals/${approvalId}`)).data;
    const post = { clientId, content: 'Word' };
    const later = { scheduledAt: tomorrow() };
    samples = {
      whoami: {},
      network_settings: { platforms: ['linkedin'], clientId },
      find_clients: { search: 'closed secret' },
      find_accounts: { clientId, limits: true },
      best_times: { clientId },
      import_media: { url: 'https://cdn.example/other.png', clientId },
      media_status: { mediaId: file.id },
      preview_post: post,
      compose_post: { ...post, ...later, action: 'schedule' },
      revise_post: { postId: draft.id, content: 'Other' },
      publish_draft: { postId: draft.id, action: 'schedule', ...later },
      find_posts: { clientId },
      find_targets: { clientId },
      post_status: { postId },
      reschedule: { postId, ...later },
      retry: { postId },
      cancel: { postId },
      confirm_account: { accountId: closed.accounts.x },
      find_campaigns: { clientId, search: 'closed' },
      change_campaign: { action: 'delete', campaignId: campaign.id },
      what_if: { clientId, cadence: [{ perDay: 1 }] },
      pending_approvals: { clientId },
      show_approval: { approvalId },
      decide_approval: { approvalId, decision: 'approve', contentHash },
      approval_link: { approvalId },
      analytics_summary: { clientId },
      post_performance: { postId },
      what_happened: { thing: 'post', id: postId },
      list_reports: { reportId },
      run_report: { reportId },
      create_client: { name: `Made ${randomUUID()}` },
      connect_link: { clientId },
    };
    secrets = [
      'Closed Secret',
      'The closed word',
      'The closed draft',
      'Closed campaign',
      'closed.png',
      'Closed report',
      // The second page of the login of its account.
      'acme second',
    ];
  });
  t.after(() => world?.close());

  const sampleOf = (name: string): Sample => {
    const args = samples[name];
    assert.ok(args !== undefined, `${name} needs arguments here`);
    const sent = JSON.stringify(args);
    return { args, secrets: secrets.filter((one) => !sent.toLowerCase().includes(one.toLowerCase())) };
  };
  let id = 0;
  const call = (secret: string, name: string) => {
    id += 1;
    return send(world, secret, callMessage(name, sampleOf(name).args, id));
  };
  const keyOf = (more: Parameters<World['keyOf']>[2], memberId = world.memberId) =>
    world.keyOf(world.workspaceId, memberId, { mode: 'test', ...more });

  t('a credential that lacks one scope of a tool is refused, and told which', async () => {
    for (const { name, scopes } of tools) {
      for (const lacking of scopes) {
        const { secret } = await keyOf({ scopes: allScopes.filter((one) => one !== lacking) });
        const { status, headers } = await call(secret, name);
        assert.equal(status, 403, `${name} without ${lacking}`);
        assert.match(headers.get('www-authenticate') ?? '', /insufficient_scope/, name);
      }
    }
  });

  t('a viewer changes nothing', async () => {
    const viewer = await world.memberOf(world.workspaceId, 'viewer');
    const { secret } = await keyOf({ scopes: [...allScopes] }, viewer);
    const before = await world.head();
    for (const { name, hints } of tools) {
      const { text } = await call(secret, name);
      if (!hints.readOnlyHint) assert.match(text, /"code":"role_required"/, name);
    }
    assert.equal(await world.head(), before);
  });

  t('a key for another client, of live, and of another workspace learn and change nothing', async () => {
    const stranger = await world.agency('Southern Cross');
    const limited = (await keyOf({ scopes: [...allScopes], clientIds: [open] })).secret;
    await world.settled();
    const before = await world.head();
    for (const [who, secret] of Object.entries({
      limited,
      live: world.liveKey.secret,
      stranger: stranger.testKey.secret,
    })) {
      for (const { name } of tools) {
        if (ofNobody.has(name) && !(who === 'limited' && name === 'create_client')) continue;
        const { text, status } = await call(secret, name);
        assert.equal(status, 200, `${who} ${name}: ${text}`);
        for (const one of sampleOf(name).secrets) assert.ok(!text.includes(one), `${who} ${name} is told ${one}`);
        const { hints } = tools.find((one) => one.name === name) as (typeof tools)[number];
        if (!hints.readOnlyHint) assert.ok(isRefused({ text }), `${who} ${name}: ${text}`);
      }
    }
    // The records of idempotent requests alone, of those that were asked and refused.
    const { rows } = await world.pool.query(
      "select stream, type from es.events where position > $1 and stream not like 'request-%'",
      [String(before)],
    );
    assert.deepEqual(rows, [], 'nothing was stored');
  });

  t('a revoked key opens no tool', async () => {
    const { id: keyId, secret } = await keyOf({ scopes: [...allScopes] });
    await execute(world.store, apikey, keyId, { type: 'Revoke' }, contextOf(world.operator, world.workspaceId));
    await until('the key is refused', async () => (await call(secret, 'whoami')).code === 'token_revoked');
    for (const { name } of tools) assert.equal((await call(secret, name)).code, 'token_revoked', name);
  });

  t('its Owner, with the same arguments, is let in: the walls refused nothing that is wrong in itself', async () => {
    const { secret } = await keyOf({ scopes: [...allScopes] });
    const client = await connect(world, secret);
    // What has no store behind it in this world, and what only fits what failed.
    const answersOtherwise: Readonly<Record<string, string>> = {
      analytics_summary: 'unavailable',
      best_times: 'unavailable',
      post_performance: 'unavailable',
      retry: 'target_not_retryable',
    };
    const last = tools.filter(({ name }) => name === 'cancel');
    for (const { name } of [...tools.filter((one) => !last.includes(one)), ...last]) {
      const answer = await client.call(name, sampleOf(name).args);
      const code = answersOtherwise[name];
      if (code === undefined) assert.equal(answer.isError, false, `${name}: ${answer.text}`);
      else assert.equal(answer.code, code, name);
    }
    await client.close();
  });
});

suite('the price of all tools', (t) => {
  let world: World;
  t.before(async () => {
    world = await mcpWorld({ rate: { perMinute: 60, burst: 20 } });
  });
  t.after(() => world?.close());

  t('whoever has spent the allowance calls no tool', async () => {
    const { secret } = world.testKey;
    for (let at = 0; at < 30; at += 1) await send(world, secret, callMessage('find_clients', {}, at));
    for (const { name } of tools) {
      const { status, code } = await send(world, secret, callMessage(name));
      assert.deepEqual([status, code], [429, 'rate_limited'], name);
    }
  });
});
