import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { testTwinIdOf } from '#domain/ids.ts';
import { type TargetCommand, target } from '#domain/post-target/target.ts';
import { outcomeNotAskable, outcomeUnknown } from '#domain/publish-failures.ts';
import { type ReportCommand, report } from '#domain/report.ts';
import { instantOf } from '#domain/zones.ts';
import { createStatements, type TableName, tableOf } from '#projections/analytics/tables.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { counters } from '#schemas/insights.ts';
import type { ReportDefinition } from '#schemas/report.ts';
import { tools } from '#services/mcp/tools/index.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { type TestClickHouse, testClickHouse } from '#test/support/clickhouse.ts';
import { type Composer, composer, tomorrow } from '#test/support/composing.ts';
import type { World } from '#test/support/http.ts';
import { type Called, connect, lines, type Mcp, mcpWorld, failed as refused, worked } from '#test/support/mcp.ts';
import { startNumbering } from '#test/support/numbering.ts';
import { failure } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

/** Each tool does in the sandbox what it promises, and its answer is valid against its own schema. */

interface ShownTarget {
  readonly targetId: string;
  readonly account: string | null;
  readonly status: string;
  readonly scheduledAt: string;
  readonly problem: { readonly code: string; readonly whatToDo: string } | null;
}

suite('mcp tools', (t) => {
  let world: World;
  let house: TestClickHouse;
  let composed: Composer;
  let mcp: Mcp;
  const called = new Set<string>();
  let validators: ReadonlyMap<string, (data: unknown) => boolean> = new Map();
  t.before(async () => {
    house = await testClickHouse();
    for (const query of createStatements(1)) await house.client.command({ query });
    world = await mcpWorld({ deps: { analytics: house.client } });
    composed = await composer(world, ['x', 'bluesky'], { name: 'Acme', timezone: 'Europe/Berlin' });
    mcp = await connect(world, world.testKey.secret);
    const ajv = new Ajv2020({ strict: true, allErrors: true, formats: { date: true, 'date-time': true } });
    const listed = await mcp.list();
    // The schema as it is listed, and the whole one, which says of rows what is always there.
    const whole = new Map(tools.map(({ name, output }) => [name, ajv.compile(JSON.parse(JSON.stringify(output)))]));
    validators = new Map(
      listed.map(({ name, outputSchema = {} }) => {
        const one = ajv.compile(outputSchema);
        return [name, (data: unknown) => one(data) && whole.get(name)?.(data) === true];
      }),
    );
  });
  t.after(async () => {
    await mcp?.close();
    await world?.close();
  });

  const valid = (name: string, answer: Called): Called['data'] => {
    called.add(name);
    const data = worked(answer);
    assert.equal(validators.get(name)?.(data), true, `${name}: ${JSON.stringify(data)}`);
    assert.equal(data.mode, 'sandbox');
    assert.ok(typeof data.nextStep === 'string' && answer.text.includes(data.nextStep), answer.text);
    assert.ok(answer.text.length < 4_000, `${name} answers ${answer.text.length} characters`);
    return data;
  };
  const use = async (name: string, args: Readonly<Record<string, unknown>> = {}) =>
    valid(name, await mcp.call(name, args));
  const compose = async (more: Readonly<Record<string, unknown>> = {}) =>
    use('compose_post', { clientId: composed.clientId, content: 'A word from us.', ...more });
  const scheduled = async () => {
    const made = await compose({ action: 'schedule', scheduledAt: tomorrow(), content: `Word ${randomUUID()}` });
    return { postId: String(made.postId), targets: made.targets as ShownTarget[] };
  };
  const context = () => contextOf(world.operator, testTwinIdOf(world.workspaceId));
  const tell = async (postId: string, targetId: string, ...commands: readonly TargetCommand[]) => {
    for (const command of commands) {
      await execute(world.store, target, targetId, command, context(), { partitionKey: postId });
    }
    await world.settled();
  };
  const tellReport = async (id: string, command: ReportCommand) => {
    await execute(world.store, report, id, command, context());
    await world.settled();
  };
  const failed = [
    { type: 'Start', now: '2099-01-01T00:00:00.000Z' },
    { type: 'RecordFailed', attempt: 1, takeover: 0, failure },
  ] as const;

  t('are listed alike by clients of both protocol lines, with schemas, hints and words', async () => {
    const names = [];
    for (const line of lines) {
      const client = await connect(world, world.testKey.secret, line);
      const listed = await client.list();
      names.push(listed.map(({ name }) => name));
      for (const { name, title, description = '', annotations, inputSchema, outputSchema } of listed) {
        assert.ok(title !== undefined && description.length > 80 && description.length < 700, name);
        assert.equal(inputSchema.additionalProperties, false, name);
        assert.equal(outputSchema?.type, 'object', name);
        const { title: _title, ...hints } = annotations ?? {};
        // Of a tool that changes nothing the other two mean nothing.
        const changing = hints.readOnlyHint === true ? [] : ['destructiveHint', 'idempotentHint'];
        assert.deepEqual(Object.keys(hints).sort(), [...changing, 'openWorldHint', 'readOnlyHint']);
      }
      const found = worked(await client.call('find_clients', { search: 'acme' }));
      assert.equal((found.clients as { clientId: string }[])[0]?.clientId, composed.clientId, line);
      await client.close();
    }
    assert.equal(names[0]?.length, tools.length);
    assert.deepEqual(names[1], names[0]);
    assert.deepEqual(names[2], names[0]);
  });

  t('read-only tools need scopes that read, the others one that changes', () => {
    for (const { name, scopes, hints } of tools) {
      const onlyReads = scopes.every((scope) => scope.endsWith('.read'));
      assert.equal(hints.readOnlyHint, onlyReads || name === 'preview_post', name);
    }
  });

  t('find_clients and find_accounts answer ids, and say how to get more rows', async () => {
    const { clients } = (await use('find_clients', { search: 'acme' })) as { clients: { name: string }[] };
    assert.deepEqual(
      clients.map(({ name }) => name),
      ['Acme'],
    );
    const first = await use('find_accounts', { clientId: composed.clientId, limit: 1 });
    assert.equal(typeof first.nextCursor, 'string');
    const next = await use('find_accounts', { clientId: composed.clientId, limit: 1, cursor: first.nextCursor });
    const ids = [first, next].flatMap(({ accounts }) =>
      (accounts as { accountId: string }[]).map((one) => one.accountId),
    );
    assert.deepEqual(ids.sort(), Object.values(composed.accounts).sort());
    const { accounts } = (await use('find_accounts', { clientId: composed.clientId, limits: true })) as {
      accounts: { platform: string; limits: { remaining: number }[]; dueWithin24Hours: number }[];
    };
    for (const { limits, dueWithin24Hours } of accounts) {
      assert.ok(limits.every(({ remaining }) => remaining > 0) && dueWithin24Hours === 0);
    }
    assert.ok(accounts.some(({ limits }) => limits.length > 0));
    // Without a restore there is nothing to confirm, and it changes nothing.
    assert.equal((await use('confirm_account', { accountId: ids[0] })).accountId, ids[0]);
    const none = await mcp.call('find_clients', { search: 'nobody' });
    assert.match(none.text, /No client fits/);
  });

  t('whoami and network_settings answer without a post', async () => {
    assert.equal((await use('whoami')).role, 'owner');
    assert.ok(((await use('network_settings', { platforms: ['instagram'] })).settings as unknown[]).length > 5);
  });

  t('an outcome that no program can find out is one for a person to look at', async () => {
    const { postId, targets } = await scheduled();
    const claim = { attempt: 1, takeover: 0 };
    const reconcileAt = '2099-01-01T00:00:10.000Z';
    const [first, second] = targets;
    for (const [targetId = '', unknown] of [
      [first?.targetId, outcomeNotAskable],
      [second?.targetId, outcomeUnknown],
    ] as const) {
      await tell(
        postId,
        targetId,
        { type: 'Start', now: '2099-01-01T00:00:00.000Z' },
        { ...claim, type: 'Checkpoint', step: 'boundary', data: null, deadline: '2099-01-01T00:00:01.000Z' },
        { ...claim, type: 'RecordUnknown', failure: unknown, reconcileAt },
      );
    }
    const { targets: rows } = await use('post_status', { postId });
    const remedies = new Map((rows as ShownTarget[]).map(({ targetId, problem }) => [targetId, problem?.whatToDo]));
    assert.match(
      remedies.get(first?.targetId ?? '') ?? '',
      /^Ask the person to look at the account: .* Do not post it/,
    );
    assert.match(remedies.get(second?.targetId ?? '') ?? '', /^Nothing: the network is being asked/);
  });

  t('network_settings names what accounts may choose, a part of many, and why a network tells nothing', async () => {
    type Choices = readonly { key: string; options: readonly { label: string }[]; problem: string | null }[];
    const asked = async (username: string, more: Readonly<Record<string, unknown>> = {}) => {
      const { clientId } = await composer(world, ['pinterest'], { name: `Of ${username}`, username });
      const answer = await mcp.call('network_settings', { platforms: ['pinterest', 'x'], clientId, ...more });
      return { text: answer.text, choices: valid('network_settings', answer).choices as Choices };
    };
    const many = await asked('many-boards-one');
    assert.deepEqual(
      many.choices.map(({ key, options }) => [key, options.length, options[0]?.label]),
      [['boardId', 25, 'Board 0001']],
    );
    assert.match(String(many.choices[0]?.problem), /more than could be read: name one with search/);
    assert.match(many.text, /options of boardId: 25 of 100/);
    const [searched] = (await asked('many-boards-two', { search: 'BOARD 1999' })).choices;
    assert.deepEqual(
      searched?.options.map(({ label }) => label),
      ['Board 1999'],
    );
    const [down] = (await asked('down-three')).choices;
    assert.deepEqual([down?.options, down?.problem], [[], 'Pinterest told nothing: 503 Service Unavailable.']);
    const [dead] = (await asked('token-death-four')).choices;
    assert.match(String(dead?.problem), /^Pinterest refuses the account: The access token is no longer valid\.$/);
    const without = await use('network_settings', { platforms: ['pinterest'] });
    assert.match(String(without.nextStep), /with clientId/);
  });

  t('best_times says the zone, and which hours are estimates', async () => {
    const { slots, timezone } = await use('best_times', { clientId: composed.clientId, count: 3 });
    for (const { weekday, hour, next } of slots as { weekday: string; hour: number; next: string }[]) {
      assert.equal(new Date(`${next}Z`).toLocaleString('en', { weekday: 'long', timeZone: 'UTC' }), weekday);
      assert.equal(Number(next.slice(11, 13)), hour);
      const ahead = Date.parse(instantOf(next, String(timezone))) - Date.now();
      assert.ok(ahead > 0 && ahead <= 7 * 86_400_000 + 3_600_000, next);
    }
    assert.equal(timezone, 'Europe/Berlin');
    assert.deepEqual(
      (slots as { basis: string }[]).map(({ basis }) => basis),
      ['prior', 'prior', 'prior'],
    );
  });

  t('preview_post tells every problem and writes nothing', async () => {
    const before = await world.head();
    const fine = await use('preview_post', { clientId: composed.clientId, content: 'Short' });
    assert.deepEqual([fine.valid, fine.targetsInAll], [true, 2]);
    const long = await use('preview_post', { clientId: composed.clientId, content: 'long '.repeat(100) });
    assert.equal(long.valid, false);
    const codes = (long.problems as { code: string; platform: string }[]).map(({ code, platform }) => [platform, code]);
    assert.deepEqual(codes.sort(), [
      ['bluesky', 'text_too_long'],
      ['x', 'text_too_long'],
    ]);
    assert.equal(await world.head(), before);
  });

  t('compose_post saves a draft unless it is told otherwise; the draft is changed, then published', async () => {
    const draft = await compose({ content: 'First', variants: [{ platform: 'x', content: 'On X' }] });
    assert.deepEqual([draft.status, draft.targets, draft.targetsInAll], ['draft', [], 2]);
    const would = draft.wouldGoTo as { platform: string; text: string; account: string }[];
    assert.deepEqual(would.map(({ platform, text, account }) => [platform, text, account]).sort(), [
      ['bluesky', 'First', 'acme'],
      ['x', 'On X', 'acme'],
    ]);
    const { postId } = draft;
    await use('revise_post', { postId, content: 'Second', platforms: ['x'] });
    const shown = (await world.tester.get(`/posts/${postId}`)).data as Record<string, unknown>;
    assert.equal(shown.content, 'Second');
    assert.equal((shown.variants as { contentOverride: string }[])[0]?.contentOverride, 'On X');
    assert.deepEqual((shown.targetSelection as { platforms: string[] }).platforms, ['x']);
    const out = await use('publish_draft', { postId, action: 'schedule', scheduledLocal: '2027-01-05T09:00' });
    const [only, ...others] = out.targets as ShownTarget[];
    assert.deepEqual([out.status, only?.scheduledAt, others.length], ['scheduled', '2027-01-05T08:00:00.000Z', 0]);
  });

  t('compose_post schedules or publishes when told, and says what goes out where and when', async () => {
    const at = tomorrow();
    const answer = await mcp.call('compose_post', {
      clientId: composed.clientId,
      content: 'Tomorrow',
      action: 'schedule',
      scheduledAt: at,
    });
    const { targets, status } = valid('compose_post', answer);
    assert.equal(status, 'scheduled');
    assert.deepEqual(
      (targets as ShownTarget[]).map(({ scheduledAt, account }) => [scheduledAt, account]),
      [
        [at, 'acme'],
        [at, 'acme'],
      ],
    );
    assert.match(answer.text, /^Scheduled in the sandbox: no real network sees it\. postId [\w-]{36}, 2 targets\./);
    assert.match(answer.text, /x "acme" \(targetId .* Europe\/Berlin/);
    const now = await compose({ action: 'publish_now', content: 'Now' });
    assert.notEqual(now.status, 'draft');
    const again = await mcp.call('compose_post', {
      clientId: composed.clientId,
      content: 'Now',
      action: 'publish_now',
    });
    assert.match(again.text, /duplicate_text/);
  });

  t('a time that is missing or contradicts the action is refused, since a post cannot be taken back', async () => {
    for (const more of [
      { action: 'schedule' },
      { action: 'publish_now', scheduledAt: tomorrow() },
      { scheduledAt: tomorrow(), scheduledLocal: '2027-01-05T09:00' },
      { platforms: ['x'], accountIds: [composed.accounts.x] },
      { exceptPlatforms: ['x'], accountIds: [composed.accounts.x] },
      { exceptPlatforms: ['x'], platforms: ['bluesky'] },
      { exceptPlatforms: ['x', 'bluesky'] },
    ]) {
      const answer = await mcp.call('compose_post', { clientId: composed.clientId, content: 'x', ...more });
      assert.deepEqual([answer.isError, answer.code], [true, 'validation_failed'], answer.text);
    }
  });

  t('an argument that does not exist is refused by its name, with those that do', async () => {
    const answer = await mcp.call('post_status', { postId: randomUUID(), post: 1 });
    assert.ok(answer.isError && /no argument post; it takes postId/.test(answer.text), answer.text);
  });

  t('revise_post changes what is scheduled; find_posts and post_status show it', async () => {
    const { postId } = await scheduled();
    const content = `Revised ${randomUUID()}`;
    const revised = await use('revise_post', { postId, content });
    assert.deepEqual([revised.changed, revised.skipped], [2, []]);
    for (const [more, how] of [
      [{ scheduledAt: tomorrow() }, /reschedule moves it/],
      [{ platforms: ['x'] }, /cancel takes accounts out/],
    ] as const) {
      const answer = await mcp.call('revise_post', { postId, content: 'Other', ...more });
      assert.deepEqual([answer.isError, answer.code], [true, 'validation_failed'], answer.text);
      assert.match(answer.text, how);
    }
    await world.settled();
    const { posts } = await use('find_posts', {
      search: content,
      statuses: ['scheduled'],
      clientId: composed.clientId,
    });
    assert.deepEqual(
      (posts as { postId: string }[]).map((one) => one.postId),
      [postId],
    );
    const status = await use('post_status', { postId });
    assert.deepEqual([status.content, status.targetsInAll], [content, 2]);
  });

  t('post_status says what failed and what to do, and retry sends it again', async () => {
    const { postId, targets } = await scheduled();
    const [broken] = targets;
    await tell(postId, broken?.targetId ?? '', ...failed);
    const { targets: seen } = (await use('post_status', { postId })) as { targets: ShownTarget[] };
    const [first] = seen;
    assert.deepEqual([first?.targetId, first?.status], [broken?.targetId, 'failed'], 'what failed comes first');
    assert.deepEqual([first?.problem?.code, first?.problem?.whatToDo], ['network_down', 'Call retry.']);
    const { targets: found } = (await use('find_targets', { statuses: ['failed'], clientId: composed.clientId })) as {
      targets: (ShownTarget & { readonly reason: string; readonly whatToDo: string })[];
    };
    assert.deepEqual(
      found.map(({ targetId, whatToDo }) => [targetId, whatToDo]),
      [[broken?.targetId, 'Call retry.']],
    );
    const { done } = (await use('retry', { postId })) as { done: ShownTarget[] };
    assert.deepEqual(
      done.map(({ targetId, status }) => [targetId, status]),
      [[broken?.targetId, 'pending']],
    );
  });

  t('reschedule moves all or some targets, cancel ends all or some, and discards a draft', async () => {
    const { postId, targets } = await scheduled();
    const scheduledAt = '2027-02-02T10:00:00.000Z';
    const moved = (await use('reschedule', { postId, scheduledAt })) as { done: ShownTarget[] };
    assert.deepEqual(
      moved.done.map((one) => one.scheduledAt),
      [scheduledAt, scheduledAt],
    );
    const one = targets[0]?.targetId;
    const some = (await use('cancel', { postId, targetIds: [one] })) as { done: ShownTarget[] };
    assert.deepEqual(
      some.done.map(({ targetId, status }) => [targetId, status]),
      [[one, 'canceled']],
    );
    const rest = (await use('cancel', { postId })) as { done: ShownTarget[] };
    assert.deepEqual(
      rest.done.map(({ status }) => status),
      ['canceled', 'canceled'],
    );
    const other = await scheduled();
    const foreign = await mcp.call('cancel', { postId, targetIds: [other.targets[0]?.targetId] });
    assert.deepEqual([foreign.isError, foreign.code], [true, 'not_found'], 'a target of another post');
    const draft = await compose();
    const early = await mcp.call('reschedule', { postId: draft.postId, shiftMinutes: 60 });
    assert.match(early.text, /it is a draft, which revise_post and publish_draft change/);
    await use('cancel', { postId: draft.postId });
    await world.settled();
    assert.equal((await world.tester.get(`/posts/${draft.postId}`)).status, 404);
  });

  t('a cancel says of what its network has to give back first that it is not canceled yet', async () => {
    const own = await composer(world, ['facebook']);
    const schedule = { type: 'at', scheduledAt: new Date(Date.now() + 3_600_000).toISOString() };
    const made = await world.tester.post('/posts', own.body({ scheduleMode: 'native', schedule }));
    const postId = String(made.data.id);
    const [{ id = '' } = {}] = made.data.targets as readonly { readonly id?: string }[];
    const claim = { attempt: 1, takeover: 0 };
    const calling: readonly TargetCommand[] = [
      { type: 'Start', now: new Date().toISOString() },
      { type: 'Checkpoint', ...claim, step: 'boundary', data: {}, deadline: schedule.scheduledAt },
    ];
    const context = contextOf(world.operator, testTwinIdOf(world.workspaceId));
    for (const one of calling) await execute(world.store, target, id, one, context, { partitionKey: postId });
    const some = await mcp.call('cancel', { postId, targetIds: [id] });
    const { done } = valid('cancel', some) as unknown as { done: (ShownTarget & { readonly undo: string })[] };
    assert.deepEqual([done[0]?.status, done[0]?.undo], ['publishing', 'pending']);
    assert.match(some.text, /1 target canceled, 1 of them only once the network has given them back/);
    assert.match(
      (await mcp.call('cancel', { postId })).text,
      /0 of 1 target .*being taken back or changed at the network/s,
    );
  });

  t('import_media and media_status tell how far a file is', async () => {
    const { asset } = (await use('import_media', { url: 'https://cdn.example/winter.png', altText: 'Snow' })) as {
      asset: { mediaId: string; publishable: boolean };
    };
    assert.equal(asset.publishable, false);
    await world.settled();
    const { assets } = (await use('media_status', { mediaId: asset.mediaId })) as { assets: { status: string }[] };
    assert.equal(assets[0]?.status, 'transcoding');
    const found = (await use('media_status', { search: 'winter' })) as { assets: { mediaId: string }[] };
    assert.equal(found.assets[0]?.mediaId, asset.mediaId);
  });

  t('pending_approvals lists, show_approval shows all, and decide_approval decides about that', async () => {
    const strict = await composer(world, ['x'], { name: 'Strict' });
    await world.tester.patch(`/clients/${strict.clientId}`, { approvalRequired: true });
    await world.settled();
    const decided = async (decision: string, comment?: string) => {
      const args = {
        clientId: strict.clientId,
        content: `For ${decision}`,
        action: 'schedule',
        scheduledAt: tomorrow(),
      };
      const made = await use('compose_post', args);
      assert.equal(made.status, 'pending_approval');
      await world.settled();
      const { approvals } = (await use('pending_approvals', { postId: made.postId })) as {
        approvals: { approvalId: string; content: string }[];
      };
      assert.deepEqual(
        approvals.map(({ approvalId, content }) => [approvalId, content]),
        [[made.approvalId, `For ${decision}`]],
      );
      const shown = await use('show_approval', { approvalId: made.approvalId });
      assert.ok((shown.lines as string[]).includes(`- text on x: "For ${decision}"`));
      const done = await use('decide_approval', {
        ...{ approvalId: made.approvalId, contentHash: shown.contentHash },
        decision,
        ...(comment ? { comment } : {}),
      });
      return done.status;
    };
    assert.equal(await decided('approve'), 'approved');
    assert.equal(await decided('request_changes', 'Please shorten it.'), 'changes_requested');
    assert.equal(await decided('reject', 'Off brand.'), 'rejected');
  });

  t('approval_link makes a page on which a guest decides; post_status tells what the guest wrote', async () => {
    const strict = await composer(world, ['x'], { name: 'Guests' });
    await world.tester.patch(`/clients/${strict.clientId}`, { approvalRequired: true });
    await world.settled();
    const made = await use('compose_post', {
      ...{ clientId: strict.clientId, content: 'For the guest', action: 'schedule', scheduledAt: tomorrow() },
    });
    await world.settled();
    const link = await use('approval_link', { approvalId: made.approvalId, expiresInHours: 24 });
    assert.match(String(link.url), /^http/);
    const again = await mcp.call('approval_link', { approvalId: randomUUID() });
    assert.equal(again.code, 'not_found');
    const links = { approvalId: made.approvalId };
    const listed = await use('approval_link', { ...links, action: 'list' });
    assert.deepEqual([listed.url, String(listed.links).includes(`linkId ${link.linkId}: until`)], [null, true]);
    refused(await mcp.call('approval_link', { ...links, action: 'revoke' }), 'validation_failed');
    refused(await mcp.call('approval_link', { ...links, action: 'revoke', linkId: randomUUID() }), 'not_found');
    const revoked = await use('approval_link', { ...links, action: 'revoke', linkId: link.linkId });
    assert.match(String(revoked.links), /, revoked, by apikey /);
    assert.equal((await fetch(String(link.url))).status, 404);
  });

  t('find_campaigns and change_campaign make, find, fill, move and delete a campaign', async () => {
    const made = await use('change_campaign', { action: 'create', name: 'Spring', clientId: composed.clientId });
    const { campaignId } = made;
    const { postId, targets } = await scheduled();
    await use('change_campaign', { action: 'add_posts', campaignId, postIds: [postId] });
    await world.settled();
    const { campaigns } = (await use('find_campaigns', { search: 'spr' })) as { campaigns: Record<string, unknown>[] };
    assert.deepEqual(
      campaigns.map((one) => [one.campaignId, one.postCount]),
      [[campaignId, 1]],
    );
    const move = { action: 'move', campaignId, minutes: 90 };
    assert.equal((await use('change_campaign', move)).doneInAll, 2);
    assert.equal((await use('change_campaign', move)).replayed, true, 'the same step twice is one');
    const { data } = await world.tester.get(`/posts/${postId}`);
    const before = new Map(targets.map((one) => [one.targetId, Date.parse(one.scheduledAt)]));
    for (const one of data.targets as { id: string; scheduledAt: string }[]) {
      assert.equal(Date.parse(one.scheduledAt) - (before.get(one.id) ?? 0), 90 * 60_000);
    }
    const { posts } = (await use('find_posts', { campaignId })) as { posts: { postId: string }[] };
    assert.deepEqual(
      posts.map((one) => one.postId),
      [postId],
    );
    await use('change_campaign', { action: 'remove_posts', campaignId, postIds: [postId] });
    await use('change_campaign', { action: 'update', campaignId, startsOn: '2027-03-01' });
    for (const wrong of [
      { action: 'move', campaignId },
      { action: 'move', campaignId, days: 1, minutes: 1 },
      { action: 'move', days: 1 },
      { action: 'delete', campaignId, name: 'Summer' },
      { action: 'create' },
    ]) {
      const answer = await mcp.call('change_campaign', wrong);
      assert.deepEqual([answer.isError, answer.code], [true, 'validation_failed'], answer.text);
    }
    await use('change_campaign', { action: 'delete', campaignId });
    assert.equal((await world.tester.get(`/campaigns/${campaignId}`)).status, 404);
  });

  t('what_if says what another pace, quota or a moved campaign would do, and writes nothing', async () => {
    const paced = await composer(world, ['x'], { name: 'Paced' });
    const { campaignId } = await use('change_campaign', { action: 'create', name: 'Paced', clientId: paced.clientId });
    const at = Date.parse(tomorrow());
    const posts: string[] = [];
    for (const n of [0, 1]) {
      const scheduledAt = new Date(at + n * 600_000).toISOString();
      const args = { clientId: paced.clientId, campaignId, action: 'schedule', scheduledAt, content: `Paced ${n}` };
      posts.push(String((await use('compose_post', args)).postId));
    }
    await world.settled();
    const before = await world.head();
    const slower = await use('what_if', { clientId: paced.clientId, cadence: [{ platform: 'x', perDay: 1 }] });
    const [head = '', change = '', ...rest] = slower.lines as readonly string[];
    assert.deepEqual([slower.changed, head.startsWith('1 target of 2 until ')], [1, true], head);
    assert.match(
      change,
      new RegExp(`^- x target [\\w-]+ of post ${posts[1]}: goes_out .* → goes_out .*cadence_reached`),
    );
    assert.deepEqual(rest, [`- composed anew, post ${posts[1]}: taken → cadence_exceeded`]);
    const moved = await use('what_if', { clientId: paced.clientId, shift: { campaignId, days: 1 } });
    assert.equal(moved.changed, 2);
    const none = await use('what_if', { clientId: paced.clientId, quota: 0 });
    assert.match(String(none.lines), /of any number → \d+ of 0, \d+ over it/);
    refused(await mcp.call('what_if', { clientId: paced.clientId }), 'validation_failed');
    assert.deepEqual(await world.eventsAfter(before), []);
  });

  t('analytics_summary says the window, its zone and its age back; unknown is a word, never 0', async () => {
    const write = (table: TableName, row: object) =>
      house.client.insert({ table: tableOf(table, 1), values: [row], format: 'JSONEachRow' });
    const bits = ['likes', 'saves', 'shares'].reduce((sum, name) => sum + 2 ** counters.indexOf(name as never), 0);
    const row = {
      ...{ workspace_id: testTwinIdOf(world.workspaceId), client_id: composed.clientId, platform: 'x' },
      ...{ day: '2026-05-02', observed_at: '2026-05-02 03:00:00.500', version: 1, targets: 1, fetched: bits },
      ...{ likes: 30, shares: 0 },
    };
    for (const table of ['workspace_days', 'client_days'] as const) await write(table, row);
    const days = { from: '2026-05-01', to: '2026-05-07' };
    for (const args of [days, { ...days, clientId: composed.clientId, compare: 'previous' }]) {
      const answer = await mcp.call('analytics_summary', args);
      const data = valid('analytics_summary', answer);
      assert.deepEqual(data.window, { ...days, timezone: 'Europe/Berlin', asOf: '2026-05-02T03:00:00.500Z' });
      const { likes, shares, saves, clicks } = data.totals as Record<string, unknown>;
      assert.deepEqual([likes, shares, saves, clicks], [30, 0, 'not reported', 'not fetched yet']);
      assert.match(answer.text, /^From 2026-05-01 to 2026-05-07 in Europe\/Berlin \(sandbox\)\. As of 2026-05-02T03/);
    }
    const quiet = await use('analytics_summary', { accountId: composed.accounts.bluesky, ...days });
    assert.deepEqual((quiet.totals as Record<string, unknown>).likes, 'not fetched yet');
    assert.equal((quiet.window as { asOf: unknown }).asOf, null);
  });

  t('post_performance answers one post, or the posts of a window', async () => {
    const { postId, targets } = await scheduled();
    const publishedAt = '2026-11-01T10:00:00.000Z';
    await tell(postId, targets[0]?.targetId ?? '', { type: 'Start', now: '2099-01-01T00:00:00.000Z' }, {
      type: 'RecordPublished',
      attempt: 1,
      takeover: 0,
      externalId: 'x-1',
      permalink: null,
      publishedAt,
    } as never);
    const one = (await use('post_performance', { postId })) as { posts: { figures: Record<string, unknown> }[] };
    assert.equal(one.posts[0]?.figures.likes, 'not fetched yet');
    const list = await use('post_performance', { clientId: composed.clientId, sort: 'likes', limit: 5 });
    assert.ok(Array.isArray(list.posts));
  });

  t('list_reports lists them, and gives the address of the newest file', async () => {
    const id = randomUUID();
    const definition: ReportDefinition = {
      ...({ name: 'Monthly', kind: 'workspace', window: 'last_30_days' } as const),
      ...{ formats: ['csv'], schedule: null },
      filters: { clientId: null, socialAccountId: null, platform: null },
    };
    await tellReport(id, { type: 'Define', definition });
    const all = (await use('list_reports')) as { reports: { reportId: string }[] };
    assert.deepEqual(
      all.reports.map(({ reportId }) => reportId),
      [id],
    );
    const runId = randomUUID();
    const at = '2026-03-03T12:00:00.000Z';
    await tellReport(id, { type: 'RequestRun', runId, at, timezone: 'UTC', by: 'request', formats: null });
    const bytes = Buffer.from('a,b\r\n');
    const key = `${testTwinIdOf(world.workspaceId)}/reports/${runId}/report-1.csv`;
    const contentType = 'text/csv; charset=utf-8';
    await world.deps.blobs.put(key, bytes, { contentType, bytes: bytes.length });
    const file = { format: 'csv', contentType, bytes: bytes.length, sha256: 'b'.repeat(64), key } as const;
    const completeness = { complete: true, provisionalDays: [] };
    await tellReport(id, { type: 'Complete', runId, asOf: at, exports: [file], completeness });
    const { download } = (await use('list_reports', { reportId: id })) as { download: { url: string } };
    assert.equal(await (await fetch(download.url)).text(), 'a,b\r\n');
  });

  t('run_report starts a run by a name as a person says it, once, and gives the address of its file', async () => {
    const named = async (name: string): Promise<string> => {
      const id = randomUUID();
      const definition: ReportDefinition = {
        ...({ name, kind: 'workspace', window: 'last_7_days', formats: ['csv'], schedule: null } as const),
        filters: { clientId: null, socialAccountId: null, platform: null },
      };
      await tellReport(id, { type: 'Define', definition });
      return id;
    };
    const [id] = [await named('Weekly figures'), await named('Weekly figures of Acme')];
    const waiting = await use('run_report', { name: 'weekly figures', format: 'json', idempotencyKey: 'run-1' });
    assert.deepEqual([waiting.reportId, waiting.status, waiting.url], [id, 'running', null]);
    const several = await mcp.call('run_report', { name: 'the weekly report' });
    assert.match(
      refused(several, 'validation_failed'),
      new RegExp(`several reports.*"Weekly figures" \\(reportId ${id}\\)`),
    );
    assert.match(refused(await mcp.call('run_report', { name: 'Nothing' }), 'validation_failed'), /fits no report/);
    refused(await mcp.call('run_report', {}), 'validation_failed');
    refused(await mcp.call('run_report', { reportId: id, name: 'weekly' }), 'validation_failed');
    // It is made while the tool looks for it.
    const again = use('run_report', { name: 'weekly figures', format: 'json', idempotencyKey: 'run-1' });
    const runId = String(waiting.runId);
    const key = `${testTwinIdOf(world.workspaceId)}/reports/${runId}/report-1.json`;
    await world.deps.blobs.put(key, Buffer.from('{}'), { contentType: 'application/json', bytes: 2 });
    const file = { format: 'json', contentType: 'application/json', bytes: 2, sha256: 'b'.repeat(64), key } as const;
    await tellReport(id, {
      type: 'Complete',
      runId,
      asOf: null,
      exports: [file],
      completeness: { complete: true, provisionalDays: [] },
    });
    const done = await again;
    assert.deepEqual([done.runId, done.status, done.replayed], [runId, 'completed', true]);
    assert.equal(await (await fetch(String(done.url))).text(), '{}');
    const requested = (await world.store.readStream(`report-${id}`)).filter(
      ({ type }) => type === 'ReportRunRequested',
    );
    assert.deepEqual(
      requested.map(({ data }) => [data.runId, data.formats]),
      [[runId, ['json']]],
    );
  });

  t('create_client makes a client once, and connect_link a page on which its people connect accounts', async () => {
    const made = await use('create_client', { name: 'Fresh Fish', timezone: 'Europe/Lisbon' });
    const again = await use('create_client', { name: ' fresh fish ' });
    assert.equal(again.clientId, made.clientId, 'the name is taken by this client');
    const { data } = await world.tester.get(`/clients/${made.clientId}`);
    assert.deepEqual([data.name, data.type, data.timezone], ['Fresh Fish', 'brand', 'Europe/Lisbon']);
    refused(await mcp.call('create_client', { name: 'Odd', timezone: 'Mars/Base' }), 'validation_failed');
    const link = await use('connect_link', { clientId: made.clientId });
    const page = await fetch(String(link.url));
    assert.equal(page.status, 200);
    assert.match(await page.text(), /Bluesky/);
    const some = await use('connect_link', { clientId: made.clientId, platforms: ['x'], expiresInHours: 1 });
    assert.ok(Date.parse(String(some.expiresAt)) < Date.parse(String(link.expiresAt)));
    assert.doesNotMatch(await (await fetch(String(some.url))).text(), /Bluesky/);
    refused(await mcp.call('connect_link', { clientId: randomUUID() }), 'not_found');
    await world.settled();
    const links = { clientId: made.clientId };
    const listed = (await use('connect_link', { ...links, action: 'list' })).links as readonly string[];
    assert.deepEqual(
      listed.map((line) => /^linkId (\S+): /.exec(line)?.[1]),
      [some.linkId, link.linkId],
      'newest first',
    );
    assert.match(listed[0] ?? '', /, x, 0 of \d+ accounts, by apikey /);
    refused(await mcp.call('connect_link', { ...links, action: 'revoke' }), 'validation_failed');
    const revoked = await use('connect_link', { ...links, action: 'revoke', linkId: link.linkId });
    assert.match(String(revoked.links), /, revoked, /);
    assert.equal((await fetch(String(link.url))).status, 404);
    assert.equal((await fetch(String(some.url))).status, 200);
    refused(await mcp.call('connect_link', { ...links, action: 'list', clientId: randomUUID() }), 'not_found');
  });

  t('what_happened tells the changes of a thing, and what happened in a period; no app may ask', async () => {
    const numbering = startNumbering(world);
    try {
      const from = new Date().toISOString();
      const { postId } = await compose({ content: 'Before.' });
      await use('revise_post', { postId, content: 'After.' });
      await numbering.numbered();
      const thing = await use('what_happened', { thing: 'post', id: postId });
      const [counts = '', by = '', newest = ''] = thing.lines as readonly string[];
      assert.match(counts, /^2 events: 1 DraftReplaced, 1 PostDrafted\.$/);
      assert.match(by, /^By: 2 apikey [\da-f-]{36}\.$/);
      assert.match(newest, /DraftReplaced of post .*\/content "Before\." → "After\."/);
      const period = await use('what_happened', { from, clientId: composed.clientId });
      const stream = `post-${postId}`;
      assert.equal((period.lines as readonly string[]).filter((line) => line.includes(stream)).length, 2);
      const nothing = await use('what_happened', { from: '2001-01-01T00:00:00Z', to: '2001-01-02T00:00:00Z' });
      assert.deepEqual(nothing.lines, ['0 events.']);
      refused(await mcp.call('what_happened', { thing: 'post' }), 'validation_failed');
      refused(await mcp.call('what_happened', { thing: 'post', id: randomUUID() }), 'not_found');
    } finally {
      await numbering.stop();
    }
  });

  t('every tool was called, and none answered what its schema does not say', () => {
    assert.deepEqual([...called].sort(), tools.map(({ name }) => name).sort());
  });
});
