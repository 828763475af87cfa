import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { testTwinIdOf } from '#domain/ids.ts';
import { type TargetCommand, target } from '#domain/post-target/target.ts';
import { type ReportCommand, report } from '#domain/report.ts';
import { instantOf } from '#domain/zones.ts';
import { sandboxAccounts, sandboxProfile } from '#infra/platforms/sandbox/index.ts';
import { createStatements, tableOf } from '#projections/analytics/tables.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { grantableScopes } from '#schemas/grant.ts';
import { counters } from '#schemas/insights.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { Agent, type Data } from '#test/support/agent.ts';
import { readyAsset } from '#test/support/assets.ts';
import { type TestClickHouse, testClickHouse } from '#test/support/clickhouse.ts';
import { type Composer, composer } from '#test/support/composing.ts';
import type { World } from '#test/support/http.ts';
import { connect, type Mcp, mcpWorld } from '#test/support/mcp.ts';
import { oauthOf } from '#test/support/oauth.ts';
import { failure } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

/** What people ask an agent for, from names as they say them: each in at most four calls, over OAuth and with a key. */

const maxCalls = 4;
const day = 86_400_000;
const minute = 60_000;

interface Row {
  readonly [member: string]: unknown;
  readonly targetId: string;
  readonly postId: string;
  readonly platform: string;
  readonly status: string;
  readonly scheduledAt: string;
  readonly reason: string;
  readonly whatToDo: string;
}

suite('requests of people', (t) => {
  let world: World;
  let house: TestClickHouse;
  let northwind: Composer;
  let bakery: Composer;
  const clients: Record<'key' | 'oauth', Mcp | undefined> = { key: undefined, oauth: undefined };

  /** A client with a picture in the library. */
  const gallery = async (): Promise<void> => {
    const { clientId } = await composer(world, ['instagram', 'x'], { name: 'Gallery Nord' });
    const twin = testTwinIdOf(world.workspaceId);
    await readyAsset(world.store, twin, 'image', { clientId, name: 'vernissage.jpg' });
    await world.settled();
  };

  /** A client with a picture, and boards on Pinterest. */
  const atelier = async (): Promise<void> => {
    const { clientId } = await composer(world, ['instagram', 'pinterest', 'x'], { name: 'Atelier Süd' });
    await readyAsset(world.store, testTwinIdOf(world.workspaceId), 'image', { clientId, name: 'soup.jpg' });
    await world.settled();
  };

  /** Likes of this month and of the last. */
  const figures = async (clientId: string): Promise<void> => {
    const [year = 0, month = 0] = new Date().toISOString().split('-').map(Number);
    const likes = 2 ** counters.indexOf('likes');
    const rows = [
      { day: new Date(Date.UTC(year, month - 1, 1)), likes: 30 },
      { day: new Date(Date.UTC(year, month - 2, 28)), likes: 12 },
    ].map((row) => ({
      ...{ workspace_id: testTwinIdOf(world.workspaceId), client_id: clientId, platform: 'x' },
      ...{ day: row.day.toISOString().slice(0, 10), observed_at: '2026-05-02 03:00:00.500', version: 1 },
      ...{ targets: 1, fetched: likes, likes: row.likes },
    }));
    await house.client.insert({ table: tableOf('client_days', 1), values: rows, format: 'JSONEachRow' });
  };

  t.before(async () => {
    house = await testClickHouse();
    for (const query of createStatements(1)) await house.client.command({ query });
    world = await mcpWorld({ deps: { analytics: house.client } });
    northwind = await composer(world, ['x', 'bluesky', 'linkedin', 'facebook'], {
      ...{ name: 'Northwind Traders', timezone: 'Europe/Berlin' },
    });
    await composer(world, ['x'], { name: 'Strict Sisters' }).then(({ clientId }) =>
      world.tester.patch(`/clients/${clientId}`, { approvalRequired: true }),
    );
    await gallery();
    await atelier();
    await figures(northwind.clientId);
    bakery = await composer(world, ['x', 'bluesky'], { name: 'Bakery Berlin Mitte', timezone: 'Europe/Berlin' });
    const app = await oauthOf(world).register();
    const tokens = await oauthOf(world).tokensOf(app, {
      query: { scope: grantableScopes.join(' ') },
      result: { memberId: world.memberId, scopes: [...grantableScopes], mode: 'test' },
    });
    await world.settled();
    clients.key = await connect(world, world.testKey.secret);
    clients.oauth = await connect(world, tokens.access_token);
  });
  t.after(async () => {
    for (const mcp of Object.values(clients)) await mcp?.close();
    await world?.close();
  });

  const request = (what: string, carryOut: (agent: Agent) => Promise<void>): void => {
    for (const entrance of ['key', 'oauth'] as const) {
      t(`${what} (${entrance})`, async () => {
        const mcp = clients[entrance];
        assert.ok(mcp !== undefined);
        const agent = new Agent(mcp);
        await carryOut(agent);
        assert.ok(agent.calls > 0 && agent.calls <= maxCalls, `${agent.calls} calls`);
      });
    }
  };

  const context = () => contextOf(world.operator, testTwinIdOf(world.workspaceId));
  const tell = async (postId: string, targetId: string, ...commands: readonly TargetCommand[]): Promise<void> => {
    for (const one of commands) {
      await execute(world.store, target, targetId, one, context(), { partitionKey: postId });
    }
    await world.settled();
  };
  /** A post that somebody scheduled before. */
  const scheduled = async (composed: Composer, scheduledAt: string, more: Data = {}) => {
    const content = `Word ${randomUUID()}`;
    const schedule = { type: 'at', scheduledAt };
    const { data, text } = await world.tester.post('/posts', composed.body({ content, schedule, ...more }));
    assert.equal(typeof data.id, 'string', text);
    await world.settled();
    const targets = data.targets as readonly { id: string; platform: string; scheduledAt: string }[];
    return { postId: data.id, content, targets };
  };
  const storedTargets = async (postId: string) => {
    await world.settled();
    const { data } = await world.tester.get(`/posts/${postId}`);
    return data.targets as readonly {
      id: string;
      platform: string;
      status: string;
      scheduledAt: string;
      overrides: Data;
    }[];
  };
  const dayOf = (now: unknown, days: number): string =>
    new Date(Date.parse(String(now)) + days * day).toISOString().slice(0, 10);

  request('“Tuesday 9 in New York, on all of Northwind but LinkedIn”', async (agent) => {
    const { now } = await agent.ask('whoami');
    const { clientId } = await agent.client('Northwind');
    // The Tuesday after the next days.
    const ahead = 2 + ((9 - new Date(Date.parse(String(now)) + 2 * day).getUTCDay()) % 7);
    const scheduledLocal = `${dayOf(now, ahead)}T09:00`;
    const { postId } = await agent.ask('compose_post', {
      ...{ clientId, content: `New in store ${randomUUID()}`, action: 'schedule' },
      ...{ exceptPlatforms: ['linkedin'], scheduledLocal, timezone: 'America/New_York' },
    });
    const instant = instantOf(scheduledLocal, 'America/New_York');
    assert.equal(new Date(instant).getUTCDay(), 2);
    assert.deepEqual(
      (await storedTargets(String(postId))).map(({ platform, scheduledAt }) => [platform, scheduledAt]).toSorted(),
      [
        ['bluesky', instant],
        ['facebook', instant],
        ['x', instant],
      ],
    );
  });

  request('“What failed this week at the Berlin bakery, and why?”', async (agent) => {
    const { postId, targets } = await scheduled(bakery, new Date(Date.now() + 60 * minute).toISOString());
    const [broken] = targets;
    await tell(postId, broken?.id ?? '', { type: 'Start', now: new Date(Date.now() + 61 * minute).toISOString() }, {
      ...{ type: 'RecordFailed', attempt: 1, takeover: 0 },
      failure: { ...failure, category: 'reauth_required', code: 'token_revoked', message: 'The token was revoked.' },
    } as TargetCommand);
    const { now } = await agent.ask('whoami');
    const { clientId } = await agent.client('the Berlin bakery');
    const window = { from: `${dayOf(now, -3)}T00:00:00Z`, to: `${dayOf(now, 4)}T00:00:00Z` };
    const answer = await agent.call('find_targets', { clientId, statuses: ['failed'], ...window });
    const found = (answer.data.targets as Row[]).filter((one) => one.postId === postId);
    assert.deepEqual(
      found.map((one) => [one.targetId, one.reason, one.whatToDo]),
      [
        [
          ...[broken?.id, 'The token was revoked.'],
          'The holder of the account must connect it again, through connect_link. Then call retry.',
        ],
      ],
    );
    assert.match(answer.text, /token was revoked\. What to do: The holder of the account must connect/);
  });

  request('“Move tomorrow’s posts of the bakery by two hours”', async (agent) => {
    const tomorrow = dayOf(new Date().toISOString(), 1);
    const posts = [
      await scheduled(bakery, `${tomorrow}T09:00:00.000Z`),
      await scheduled(bakery, `${tomorrow}T12:30:00.000Z`),
    ];
    const other = await scheduled(northwind, `${tomorrow}T10:00:00.000Z`);
    const { now } = await agent.ask('whoami');
    const { clientId } = await agent.client('bakery');
    const window = { from: `${dayOf(now, 1)}T00:00:00Z`, to: `${dayOf(now, 2)}T00:00:00Z` };
    await agent.ask('reschedule', { clientId, ...window, shiftMinutes: 120, idempotencyKey: randomUUID() });
    for (const { postId, targets } of posts) {
      const before = new Map(targets.map((one) => [one.id, Date.parse(one.scheduledAt)]));
      for (const one of await storedTargets(postId)) {
        assert.equal(Date.parse(one.scheduledAt) - (before.get(one.id) ?? 0), 120 * minute);
      }
    }
    for (const one of await storedTargets(other.postId)) assert.equal(one.scheduledAt, `${tomorrow}T10:00:00.000Z`);
  });

  request('“Cancel everything of Northwind next week, but leave X”', async (agent) => {
    const [inWeek, after] = [
      await scheduled(northwind, `${dayOf(new Date().toISOString(), 8)}T10:00:00.000Z`),
      await scheduled(northwind, `${dayOf(new Date().toISOString(), 20)}T10:00:00.000Z`),
    ];
    const { now } = await agent.ask('whoami');
    const { clientId } = await agent.client('northwind');
    const window = { from: `${dayOf(now, 7)}T00:00:00Z`, to: `${dayOf(now, 14)}T00:00:00Z` };
    await agent.ask('cancel', { clientId, ...window, exceptPlatforms: ['x'] });
    for (const { platform, status } of await storedTargets(inWeek.postId)) {
      assert.equal(status, platform === 'x' ? 'pending' : 'canceled', platform);
    }
    for (const { status } of await storedTargets(after.postId)) assert.equal(status, 'pending');
  });

  request('“Get Sisters to approve this, and tell me what they say”', async (agent) => {
    const { clientId } = await agent.client('sisters');
    const { approvalId, postId } = await agent.ask('compose_post', {
      ...{ clientId, content: `For approval ${randomUUID()}`, action: 'schedule' },
      scheduledAt: new Date(Date.now() + 3 * day).toISOString(),
    });
    await world.settled();
    const { url } = await agent.ask('approval_link', { approvalId });
    const page = await (await fetch(String(url))).text();
    const [, contentHash = ''] = /name="contentHash" value="([0-9a-f]+)"/.exec(page) ?? [];
    const fields = { decision: 'request_changes', name: 'Ida Sister', comment: 'Say “sisters”, please.', contentHash };
    const sent = await fetch(String(url), { method: 'POST', body: new URLSearchParams(fields) });
    assert.equal(sent.status, 200, await sent.text());
    await world.settled();
    const answer = await agent.call('post_status', { postId });
    const decision = answer.data.lastDecision as Data;
    assert.deepEqual([decision.status, decision.comment], ['changes_requested', 'Say “sisters”, please.']);
    assert.match(answer.text, /changes_requested.*Say “sisters”, please\./);
    assert.match(String(answer.data.nextStep), /tell the person the comment/);
  });

  request('“Draft two posts for Northwind at the best times”', async (agent) => {
    const { clientId } = await agent.client('Northwind');
    const { slots, timezone } = await agent.ask('best_times', { clientId, count: 2 });
    for (const { next } of slots as { next: string }[]) {
      const content = `Draft ${randomUUID()}`;
      const { postId, status } = await agent.ask('compose_post', { clientId, content, scheduledLocal: next, timezone });
      assert.equal(status, 'draft');
      await world.settled();
      const { data } = await world.tester.get(`/posts/${postId}`);
      assert.equal((data.schedule as Data).scheduledAt, instantOf(next, String(timezone)));
      assert.deepEqual([data.status, data.targets], ['draft', []]);
    }
  });

  request('“How does this month compare with the last, for Northwind?”', async (agent) => {
    const { now } = await agent.ask('whoami');
    const { clientId } = await agent.client('Northwind');
    const [year = 0, month = 0] = String(now).slice(0, 7).split('-').map(Number);
    const firstOf = (at: number): string => new Date(Date.UTC(year, at, 1)).toISOString().slice(0, 10);
    const lastDay = new Date(Date.UTC(year, month - 1, 0)).toISOString().slice(0, 10);
    const likesOf = async (from: string, to: string): Promise<unknown> => {
      const answer = await agent.call('analytics_summary', { clientId, from, to });
      assert.match(answer.text, new RegExp(`^From ${from} to ${to} in Europe/Berlin`));
      return (answer.data.totals as Data).likes;
    };
    const likes = [
      await likesOf(firstOf(month - 1), String(now).slice(0, 10)),
      await likesOf(firstOf(month - 2), lastDay),
    ];
    assert.deepEqual(likes, [30, 12]);
  });

  request('“The picture as a story on Instagram, and on X only those we follow may reply”', async (agent) => {
    const { clientId } = await agent.client('Gallery');
    const { settings } = await agent.ask('network_settings', { platforms: ['instagram', 'x'] });
    const valuesOf = (platform: string, key: string): readonly string[] =>
      (settings as { platform: string; key: string; values: string[] | null }[]).find(
        (one) => one.platform === platform && one.key === key,
      )?.values ?? [];
    assert.ok(valuesOf('instagram', 'contentType').includes('story'));
    assert.ok(valuesOf('x', 'replySettings').includes('following'));
    const { assets } = await agent.ask('media_status', { clientId, search: 'vernissage' });
    const [{ mediaId = '' } = {}] = assets as { mediaId?: string }[];
    const answer = await agent.call('compose_post', {
      ...{ clientId, content: `Vernissage ${randomUUID()}`, mediaIds: [mediaId], action: 'schedule' },
      scheduledAt: new Date(Date.now() + 2 * day).toISOString(),
      variants: [
        { platform: 'instagram', settings: { contentType: 'story' } },
        { platform: 'x', settings: { replySettings: 'following' } },
      ],
    });
    assert.doesNotMatch(answer.text, /unknown_override/);
    const targets = await storedTargets(String(answer.data.postId));
    assert.deepEqual(Object.fromEntries(targets.map(({ platform, overrides }) => [platform, overrides])), {
      instagram: { contentType: 'story' },
      x: { replySettings: 'following' },
    });
  });

  interface Choices {
    readonly platform: string;
    readonly key: string;
    readonly options: readonly { readonly value: string; readonly label: string }[];
  }
  const boardIn = (choices: unknown, label: string): string => {
    const boards = (choices as Choices[]).find(({ platform, key }) => platform === 'pinterest' && key === 'boardId');
    const found = boards?.options.filter((one) => one.label === label) ?? [];
    assert.equal(found.length, 1, `one board is ${label}: ${JSON.stringify(boards)}`);
    return found[0]?.value ?? '';
  };
  const soupOf = async (agent: Agent, clientId: string): Promise<string> => {
    const { assets } = await agent.ask('media_status', { clientId, search: 'soup' });
    return (assets as { mediaId: string }[])[0]?.mediaId ?? '';
  };
  /** What the network has, whatever a tool says. */
  const boardOnPinterest = async (boardId: unknown): Promise<unknown> => {
    const { externalId } = sandboxProfile('pinterest', 'acme');
    const account = { workspaceId: '', id: randomUUID(), externalId, username: 'acme' };
    const answer = await sandboxAccounts(world.pool).choices(
      'pinterest',
      account,
      'boardId',
      AbortSignal.timeout(5_000),
    );
    assert.ok(answer.kind === 'choices');
    return answer.choices.find(({ value }) => value === boardId)?.label;
  };

  request('“Pin the soup of Atelier Süd to the board Recipes”', async (agent) => {
    const { clientId } = await agent.client('Atelier');
    const asked = { platforms: ['pinterest'], clientId, search: 'recipes' };
    const { choices } = await agent.ask('network_settings', asked);
    const boardId = boardIn(choices, 'Recipes');
    const mediaId = await soupOf(agent, clientId);
    const answer = await agent.call('compose_post', {
      ...{ clientId, content: `Soup ${randomUUID()}`, mediaIds: [mediaId], platforms: ['pinterest'] },
      ...{ action: 'schedule', scheduledAt: new Date(Date.now() + 2 * day).toISOString() },
      variants: [{ platform: 'pinterest', settings: { boardId } }],
    });
    assert.doesNotMatch(answer.text, /would fail|unknown_override/);
    const [target, ...others] = await storedTargets(String(answer.data.postId));
    assert.deepEqual([target?.platform, target?.status, others], ['pinterest', 'pending', []]);
    assert.equal(await boardOnPinterest(target?.overrides.boardId), 'Recipes');
  });

  request('“The soup of the Atelier as a story on Instagram, and on the board Winter of Pinterest”', async (agent) => {
    const { clientId } = await agent.client('Atelier');
    const answer = await agent.call('network_settings', { platforms: ['instagram', 'pinterest'], clientId });
    assert.match(answer.text, /"Recipes": \d{18}\n/);
    const { settings, choices } = answer.data;
    const contentType = (settings as { platform: string; key: string; values: string[] | null }[]).find(
      ({ platform, key }) => platform === 'instagram' && key === 'contentType',
    );
    assert.ok(contentType?.values?.includes('story'));
    const boardId = boardIn(choices, 'Winter');
    const mediaId = await soupOf(agent, clientId);
    const composed = await agent.call('compose_post', {
      ...{ clientId, content: `Soup ${randomUUID()}`, mediaIds: [mediaId], exceptPlatforms: ['x'] },
      ...{ action: 'schedule', scheduledAt: new Date(Date.now() + 2 * day).toISOString() },
      variants: [
        { platform: 'instagram', settings: { contentType: 'story' } },
        { platform: 'pinterest', settings: { boardId } },
      ],
    });
    assert.doesNotMatch(composed.text, /would fail|unknown_override/);
    const targets = await storedTargets(String(composed.data.postId));
    assert.deepEqual(Object.fromEntries(targets.map(({ platform, overrides }) => [platform, overrides])), {
      instagram: { contentType: 'story' },
      pinterest: { boardId },
    });
    assert.equal(await boardOnPinterest(boardId), 'Winter');
  });

  request('“Move the Northwind spring campaign by a day”', async (agent) => {
    const name = `Spring ${randomUUID()}`;
    const { data: campaign } = await world.tester.post('/campaigns', { name, clientId: northwind.clientId });
    const at = new Date(Date.now() + 5 * day).toISOString();
    const { postId, targets } = await scheduled(northwind, at, { campaignId: campaign.id });
    const { clientId } = await agent.client('Northwind');
    const { campaigns } = await agent.ask('find_campaigns', { clientId, search: name.toLowerCase() });
    const [{ campaignId = '' } = {}] = campaigns as { campaignId?: string }[];
    const moved = await agent.ask('change_campaign', { action: 'move', campaignId, days: 1 });
    assert.equal(moved.doneInAll, targets.length);
    for (const one of await storedTargets(postId)) assert.equal(Date.parse(one.scheduledAt) - Date.parse(at), day);
  });

  request('“May I still post five times on X today, for Northwind?”', async (agent) => {
    const { clientId } = await agent.client('Northwind');
    const answer = await agent.call('find_accounts', { clientId, platforms: ['x'], limits: true });
    const { quota } = await agent.ask('whoami');
    const [account] = answer.data.accounts as { accountId: string; limits: Data[]; dueWithin24Hours: number }[];
    await world.settled();
    const { data } = await world.tester.get(`/accounts/${account?.accountId}/cadence`);
    const windows = (data.windows as Data[]).map(({ remaining, limit }) => [remaining, limit]);
    assert.ok(windows.length > 0);
    assert.deepEqual(
      account?.limits.map(({ remaining, limit }) => [remaining, limit]),
      windows,
    );
    const [[remaining, limit] = []] = windows;
    assert.match(answer.text, new RegExp(`${remaining} of ${limit} in .* left .*due within 24 hours`));
    assert.equal((quota as Data).remaining, (await world.tester.get('/quota')).data.remaining);
  });

  /** Makes the file of the next run of a report, as the worker does. */
  const worker = async (reportId: string): Promise<string> => {
    const running = async () => {
      const { data } = await world.tester.get(`/reports/${reportId}`);
      const runs = (data.runs ?? []) as readonly { readonly runId: string; readonly status: string }[];
      return runs.find(({ status }) => status === 'running')?.runId ?? false;
    };
    let runId = '';
    await until('a run is asked for', async () => {
      const found = await running();
      if (found !== false) runId = found;
      return found !== false;
    });
    const csv = Buffer.from(`likes\r\n${randomUUID()}\r\n`);
    const key = `${testTwinIdOf(world.workspaceId)}/reports/${runId}/report-1.csv`;
    const contentType = 'text/csv; charset=utf-8';
    await world.deps.blobs.put(key, csv, { contentType, bytes: csv.length });
    const file = { format: 'csv', contentType, bytes: csv.length, sha256: 'b'.repeat(64), key } as const;
    const completeness = { complete: true, provisionalDays: [] };
    const complete: ReportCommand = {
      ...({ type: 'Complete', runId, asOf: new Date().toISOString() } as const),
      ...{ exports: [file], completeness },
    };
    await execute(world.store, report, reportId, complete, context());
    await world.settled();
    return csv.toString();
  };

  request('“Would twice a day on X still work for the bakery?”', async (agent) => {
    const soon = Date.now() + 3 * day;
    for (const n of [0, 1, 2]) await scheduled(bakery, new Date(soon + n * 30 * minute).toISOString());
    const { clientId } = await agent.client('bakery');
    const { changed, lines } = await agent.ask('what_if', { clientId, cadence: [{ platform: 'x', perDay: 2 }] });
    assert.ok(Number(changed) >= 1, String(lines));
    assert.match(String(lines), /- x target .*→ goes_out .*cadence_reached/);
  });

  request('“Run the monthly report and give me the file”', async (agent) => {
    const reportId = randomUUID();
    const name = `Monthly ${randomUUID()}`;
    const definition: ReportCommand = {
      type: 'Define',
      definition: {
        ...({ name, kind: 'workspace', window: 'last_30_days', formats: ['csv'], schedule: null } as const),
        filters: { clientId: null, socialAccountId: null, platform: null },
      },
    };
    await execute(world.store, report, reportId, definition, context());
    await world.settled();
    const made = worker(reportId);
    const run = await agent.ask('run_report', { name: name.toUpperCase() });
    assert.equal(run.reportId, reportId);
    const file = await made;
    const { download } = await agent.ask('list_reports', { reportId });
    assert.equal(await (await fetch(String((download as Data).url))).text(), file);
  });

  request('“We have a new client, Harbour Café: let them connect Bluesky”', async (agent) => {
    const name = `Harbour Café ${randomUUID()}`;
    const { clientId } = await agent.ask('create_client', { name, timezone: 'Europe/Lisbon' });
    const { url } = await agent.ask('connect_link', { clientId, platforms: ['bluesky'] });
    const body = new URLSearchParams({ platform: 'bluesky', username: 'harbour', timezone: '' });
    assert.equal((await fetch(String(url), { method: 'POST', body })).status, 200);
    await world.settled();
    const { data } = await world.tester.get(`/clients/${clientId}`);
    assert.deepEqual([data.name, data.timezone], [name, 'Europe/Lisbon']);
    const { accounts } = await agent.ask('find_accounts', { clientId });
    assert.deepEqual(
      (accounts as { platform: string; username: string }[]).map((one) => [one.platform, one.username]),
      [['bluesky', 'harbour']],
    );
  });

  // No app can be given the scope: an auditor's key asks.
  t('“Who changed the text of Northwind’s post, and what did it say before?” (key)', async () => {
    const { postId } = await scheduled(northwind, new Date(Date.now() + 3 * day).toISOString());
    const revised = await world.tester.post(`/posts/${postId}/revise`, { content: 'It says this now.' });
    assert.equal(revised.status, 200, revised.text);
    const mcp = clients.key;
    assert.ok(mcp !== undefined);
    const agent = new Agent(mcp);
    const { clientId } = await agent.client('Northwind');
    const { posts } = await agent.ask('find_posts', { clientId, search: 'It says this now' });
    const [found] = posts as readonly { readonly postId: string }[];
    const { lines } = await agent.ask('what_happened', { thing: 'post', id: found?.postId });
    const [line = ''] = (lines as readonly string[]).filter((one) => one.includes('/content'));
    assert.match(line, /PostRevised of post .*, by apikey .*\/content "Word [^"]+" → "It says this now\."/);
    assert.ok(agent.calls <= maxCalls);
    const app = clients.oauth;
    assert.ok(app !== undefined);
    await assert.rejects(app.call('what_happened', { thing: 'post', id: postId }), /events\.read|403|scope/i);
  });
});
