import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Pool } from 'pg';
import { accounts } from '#projections/accounts.ts';
import { apiKeys } from '#projections/apikeys.ts';
import { clients } from '#projections/clients.ts';
import { projections } from '#projections/index.ts';
import { invites } from '#projections/invites.ts';
import { media } from '#projections/media.ts';
import { posts } from '#projections/posts.ts';
import { maxRuns, reports } from '#projections/reports.ts';
import { migrate } from '#projections/tables.ts';
import { postTargets } from '#projections/targets.ts';
import { webhookKeyVersions, webhooks } from '#projections/webhook-endpoints.ts';
import { workspaces } from '#projections/workspaces.ts';
import { eventCatalogue } from '#schemas/events.ts';
import { fittingProbe } from '#test/support/assets.ts';
import { testDatabase } from '#test/support/postgres.ts';
import { type Given, given, instant, projected } from '#test/support/projecting.ts';
import { clientFields, failure, planned, postBody } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

suite('read models', (t) => {
  let pool: Pool;
  t.before(async () => {
    const database = await testDatabase();
    pool = new Pool({ connectionString: database.url, max: 4 });
    await migrate(pool);
  });
  t.after(async () => pool?.end());

  const on = (kind: string, id: string) => (type: string, data: unknown) => ({ stream: `${kind}-${id}`, type, data });
  const ids = <N extends string>(...names: readonly N[]) =>
    Object.fromEntries(names.map((name) => [name, randomUUID()])) as Record<N, string>;

  t('workspaces: profile and members', async () => {
    const { id, anna, ben } = ids('id', 'anna', 'ben');
    const workspace = on('workspace', id);
    await given(
      workspace('WorkspaceCreated', { name: 'Agency', timezone: 'UTC', mode: 'live', twinOf: null }),
      workspace('MemberAdded', { memberId: anna, name: 'Anna', role: 'owner' }),
      workspace('MemberAdded', { memberId: ben, name: 'Ben', role: 'viewer' }),
      workspace('MemberRoleChanged', { memberId: ben, role: 'creator' }),
      workspace('WorkspaceProfileChanged', { name: 'Studio', timezone: 'Asia/Tokyo' }),
    )
      .project(pool, workspaces)
      .sees([
        {
          id,
          revision: 4,
          created_at: instant(0),
          updated_at: instant(4),
          name: 'Studio',
          timezone: 'Asia/Tokyo',
          mode: 'live',
          twin_of: null,
          members: { [anna]: { name: 'Anna', role: 'owner' }, [ben]: { name: 'Ben', role: 'creator' } },
        },
      ]);
    await given(
      workspace('WorkspaceCreated', { name: 'A', timezone: 'UTC', mode: 'test', twinOf: ben }),
      workspace('MemberAdded', { memberId: anna, name: 'Anna', role: 'owner' }),
      workspace('MemberRemoved', { memberId: anna }),
    )
      .project(pool, workspaces)
      .sees([{ id, mode: 'test', twin_of: ben, members: {} }]);
  });

  t('api keys: created, rotated, revoked', async () => {
    const { id, memberId } = ids('id', 'memberId');
    const key = on('apikey', id);
    const hash = (letter: string): string => letter.repeat(64);
    const scopes = ['posts.read', 'posts.compose'];
    const until = instant(1000);
    const created = key('ApiKeyCreated', {
      memberId,
      name: 'ci',
      hash: hash('a'),
      prefix: 'sk_live_abcd',
      scopes,
      mode: 'live',
      expiresAt: instant(5000),
    });
    await given(created)
      .project(pool, apiKeys)
      .sees([{ id, member_id: memberId, scopes, hash: hash('a'), expires_at: instant(5000), revoked_at: null }]);
    await given(
      created,
      key('ApiKeyRotated', { hash: hash('b'), prefix: 'sk_live_efgh', previousHash: hash('a'), previousUntil: until }),
      key('ApiKeyRevoked', {}),
    )
      .project(pool, apiKeys)
      .sees([{ id, hash: hash('b'), previous_hash: hash('a'), previous_until: until, revoked_at: instant(2) }]);
  });

  t('clients: written, changed, archived, erased', async () => {
    const { id } = ids('id');
    const client = on('client', id);
    await given(
      client('ClientCreated', clientFields),
      client('ClientUpdated', { name: 'Acme & Co', timezone: null, rules: {}, type: 'influencer' }),
      client('ClientUpdated', { approvalRequired: true, defaultPostMode: 'draft', brandVoice: { tone: 'dry' } }),
      client('ClientNameClaimLapsed', { name: 'other' }),
      client('ClientArchived', {}),
    )
      .project(pool, clients)
      .sees([
        {
          id,
          revision: 4,
          name: 'Acme & Co',
          type: 'influencer',
          timezone: null,
          rules: {},
          brand_voice: { tone: 'dry' },
          approval_required: true,
          default_post_mode: 'draft',
          archived_at: instant(4),
          erased: false,
          account_count: 0,
        },
      ]);
  });

  t('invites: created, used, revoked', async () => {
    const { id, clientId, accountId } = ids('id', 'clientId', 'accountId');
    const invite = on('invite', id);
    const created = { clientId, platforms: ['x', 'tiktok'], expiresAt: instant(600), keyVersion: 'v1' };
    await given(
      invite('ConnectInviteCreated', { ...created, recipientEmail: 'someone@example.com' }),
      invite('ConnectInviteUsed', { accountId, platform: 'x' }),
      invite('ConnectInviteUsed', { accountId, platform: 'x' }),
      invite('ConnectInviteRevoked', { reason: null }),
    )
      .project(pool, invites)
      .sees([
        {
          id,
          client_id: clientId,
          platforms: ['x', 'tiktok'],
          expires_at: instant(600),
          key_version: 'v1',
          used: [accountId],
          revoked_at: instant(3),
        },
      ]);
  });

  const profile = (name: string | null) => ({ username: name, displayName: name, avatarUrl: null });
  const connected = (clientId: string, over: object = {}) => ({
    clientId,
    platform: 'x',
    externalId: 'ext-1',
    ...profile('ann'),
    scopes: ['post', 'a, "quoted" {scope}'],
    expiresAt: null,
    timezone: 'Europe/Rome',
    network: 'sandbox',
    inviteId: null,
    ...over,
  });

  t('accounts: connected, lapsed, back, renamed, gone; counted on their client', async () => {
    const { id, other, clientId } = ids('id', 'other', 'clientId');
    const account = on('account', id);
    const { platform: _p, externalId: _e, network: _n, ...again } = connected(clientId, profile('ben'));
    const events = [
      on('client', clientId)('ClientCreated', clientFields),
      account('AccountConnected', connected(clientId)),
      on('account', other)('AccountConnected', connected(clientId, { platform: 'tiktok' })),
      account('AccountReauthRequired', { reason: 'token expired' }),
    ];
    await given(...events)
      .project(pool, accounts)
      .sees([
        {
          id,
          client_id: clientId,
          platform: 'x',
          external_id: 'ext-1',
          username: 'ann',
          display_name: 'ann',
          timezone: 'Europe/Rome',
          status: 'reauth_required',
          health_reason: 'token expired',
          checked_at: instant(3),
          scopes: ['post', 'a, "quoted" {scope}'],
          network: 'sandbox',
        },
        { id: other, status: 'connected', checked_at: instant(2) },
      ]);
    await given(...events)
      .project(pool, clients)
      .sees([{ id: clientId, revision: 0, account_count: 2 }]);
    const later = [
      ...events,
      account('AccountReauthorized', { ...again, timezone: null }),
      account('AccountProfileChanged', { clientId, ...profile('bea'), avatarUrl: 'https://example.com/b.png' }),
      on('account', other)('AccountDisconnected', { reason: 'requested' }),
    ];
    await given(...later)
      .project(pool, accounts)
      .sees([
        {
          id,
          status: 'connected',
          health_reason: null,
          username: 'bea',
          avatar_url: 'https://example.com/b.png',
          timezone: null,
          checked_at: instant(4),
          updated_at: instant(5),
        },
        { id: other, status: 'disconnected', health_reason: 'requested' },
      ]);
    await given(...later)
      .project(pool, clients)
      .sees([{ id: clientId, revision: 0, account_count: 1 }]);
  });

  t('a client that is not there yet holds its count and does not show', async () => {
    const { id, clientId } = ids('id', 'clientId');
    await given(on('account', id)('AccountConnected', connected(clientId)))
      .project(pool, clients)
      .sees([]);
    const { rows } = await pool.query('select id, revision, account_count from read.clients_v1');
    assert.deepEqual(rows, [{ id: clientId, revision: -1, account_count: 1 }]);
    await given(
      on('account', id)('AccountConnected', connected(clientId)),
      on('client', clientId)('ClientCreated', clientFields),
    )
      .project(pool, clients)
      .sees([{ id: clientId, account_count: 1, created_at: instant(1), name: 'Acme' }]);
  });

  t('posts: a draft, replaced', async () => {
    const { id, clientId, campaignId } = ids('id', 'clientId', 'campaignId');
    const post = on('post', id);
    const createdBy = { type: 'member', id: 'm' };
    await given(
      post('PostDrafted', { clientId, createdBy, body: postBody() }),
      post('DraftReplaced', { body: postBody({ content: 'a "new" \\ text {\u{1f98a}}', campaignId }) }),
    )
      .project(pool, posts)
      .sees([
        {
          id,
          client_id: clientId,
          status: 'draft',
          shown_status: 'draft',
          body: postBody({ content: 'a "new" \\ text {\u{1f98a}}', campaignId }),
          created_by: createdBy,
          campaign_id: campaignId,
          plan_revision: null,
          planned: 0,
          scheduled_at: null,
          counts: { total: 0 },
          platforms: [],
          fan_out_behind: false,
        },
      ]);
  });

  /** A post with two targets, and the events that make it. */
  const scheduled = () => {
    const { id, clientId, a, b, accountA, accountB } = ids('id', 'clientId', 'a', 'b', 'accountA', 'accountB');
    const targets = [
      planned({ targetId: a, accountId: accountA, clientId, dueAt: '2026-03-02T09:00:00.000Z' }),
      planned({ targetId: b, accountId: accountB, clientId, platform: 'threads' }),
    ];
    const post = on('post', id);
    const createdBy = { type: 'apikey', id: 'k' };
    return {
      ...{ id, clientId, a, b, accountA, accountB, targets, post },
      targetA: on('target', a),
      targetB: on('target', b),
      plan: post('PostScheduled', { clientId, createdBy, body: postBody(), plan: { number: 1, targets } }),
      fanOut: targets.map((one) =>
        on('target', one.targetId)('TargetScheduled', { ...one, postId: id, postRevision: 0 }),
      ),
    };
  };
  const claim = { attempt: 1, takeover: 0 };
  const out = { ...claim, externalId: 'x-1', permalink: 'https://x.example/1', publishedAt: instant(90) };

  t('posts: the plan, and what is still missing of it', async () => {
    const { id, plan, fanOut } = scheduled();
    await given(plan)
      .project(pool, posts)
      .sees([{ id, status: 'scheduled', planned: 2, plan_revision: 0, target_count: 0, fan_out_behind: true }]);
    await given(plan, ...fanOut)
      .project(pool, posts)
      .sees([
        {
          id,
          status: 'scheduled',
          shown_status: 'scheduled',
          target_count: 2,
          fan_out_behind: false,
          scheduled_at: '2026-03-02T08:00:00.000Z',
          platforms: ['threads', 'x'],
          counts: { total: 2, pending: 2 },
        },
      ]);
  });

  t('posts: publishing is shown while a target is, the rest follows from the post', async () => {
    const { id, a, b, plan, fanOut, targetA, targetB, post } = scheduled();
    const started = [plan, ...fanOut, targetA('TargetPublishStarted', claim)];
    await given(...started)
      .project(pool, posts)
      .sees([{ id, status: 'scheduled', shown_status: 'publishing', publishing_count: 1 }]);
    const settle = (targetId: string, outcome: string, publishedAt: string | null) =>
      post('PostTargetSettled', { targetId, targetRevision: 2, outcome, publishedAt });
    const partly = [...started, targetA('TargetPublished', out), settle(a, 'published', instant(90))];
    await given(...partly)
      .project(pool, posts)
      .sees([{ id, status: 'publishing', published_at: instant(90), counts: { total: 2, pending: 1, published: 1 } }]);
    const all = [
      ...partly,
      targetB('TargetPublishStarted', claim),
      targetB('TargetFailed', { ...claim, failure }),
      settle(b, 'failed', null),
      post('PostPartiallyPublished', { publishedAt: instant(90) }),
    ];
    await given(...all)
      .project(pool, posts)
      .sees([{ id, revision: 3, status: 'partially_published', counts: { total: 2, published: 1, failed: 1 } }]);
    await given(...all, post('PostTargetReopened', { targetId: b, targetRevision: 3 }))
      .project(pool, posts)
      .sees([{ id, status: 'publishing' }]);
    const again = { targetId: b, targetRevision: 6, outcome: 'published', publishedAt: instant(80) };
    await given(
      ...all,
      post('PostTargetReopened', { targetId: b, targetRevision: 3 }),
      post('PostTargetSettled', again),
      post('PostPublished', { publishedAt: instant(80) }),
    )
      .project(pool, posts)
      .sees([{ id, status: 'published', published_at: instant(80) }]);
    await given(plan, settle(a, 'failed', null), settle(b, 'failed', null), post('PostFailed', {}))
      .project(pool, posts)
      .sees([{ id, status: 'failed', published_at: null }]);
  });

  t('posts: an intent is behind until its open targets have applied it', async () => {
    const { id, a, b, plan, fanOut, targetA, targetB, post } = scheduled();
    const intent = post('PostTargetsChanged', {
      change: { kind: 'cancel', reason: 'client_archived' },
      targetIds: [a, b],
    });
    const cancel = { reason: 'client_archived', postRevision: 1 };
    const begun = [plan, ...fanOut, targetB('TargetPublishStarted', claim), intent];
    await given(...begun)
      .project(pool, posts)
      .sees([{ id, fan_out_behind: true, shown_status: 'publishing' }]);
    const done = [...begun, targetA('TargetCanceled', cancel)];
    await given(...done)
      .project(pool, posts)
      .sees([{ id, fan_out_behind: false }]);
    // A skipped target that is open again later (a retry) is not behind.
    await given(
      ...done,
      post('PostTargetsSkipped', { intentRevision: 1, targetIds: [b], reason: 'publishing' }),
      targetB('TargetFailed', { ...claim, failure }),
      targetB('TargetRequeued', { by: 'retry', dueAt: instant(99) }),
    )
      .project(pool, posts)
      .sees([{ id, fan_out_behind: false, scheduled_at: instant(99), counts: { total: 2, canceled: 1, pending: 1 } }]);
    const settle = (targetId: string) =>
      post('PostTargetSettled', { targetId, targetRevision: 9, outcome: 'canceled', publishedAt: null });
    await given(plan, ...fanOut, intent, settle(a), settle(b), post('PostCanceled', { reason: 'client_archived' }))
      .project(pool, posts)
      .sees([{ id, status: 'canceled' }]);
  });

  t('targets: every way through', async () => {
    const world = scheduled();
    const { id, clientId, accountA, a, plan, targetA: target } = world;
    const [first] = world.fanOut;
    assert.ok(first !== undefined);
    const sees = async (events: readonly Given[], row: object) =>
      given(plan, first, ...events)
        .project(pool, postTargets)
        .sees([{ id: a, ...row }]);
    const due = '2026-03-02T09:00:00.000Z';
    await sees([], {
      post_id: id,
      client_id: clientId,
      account_id: accountA,
      platform: 'x',
      status: 'pending',
      due_at: due,
      scheduled_local: null,
      timezone: 'UTC',
      jitter_seconds: 0,
      schedule_mode: 'managed',
      attempts: 0,
      takeover: 0,
      next_action_at: due,
      retry_at: null,
      failure: null,
      post_revision: 0,
      applied_revision: 0,
    });
    const held = target('TargetHeld', { postRevision: 1 });
    const moved = { dueAt: instant(5), scheduledLocal: '2026-03-01T00:05', jitterSeconds: 60 };
    await sees([held], { status: 'awaiting_approval', next_action_at: null, applied_revision: 1, post_revision: 0 });
    await sees([held, target('TargetRescheduled', moved)], {
      status: 'awaiting_approval',
      due_at: instant(5),
      scheduled_local: '2026-03-01T00:05',
      jitter_seconds: 60,
      next_action_at: null,
    });
    await sees([held, target('TargetReleased', { postRevision: 2, dueAt: instant(7) })], {
      status: 'pending',
      due_at: instant(7),
      next_action_at: instant(7),
      applied_revision: 2,
    });
    await sees([target('TargetRevised', { postRevision: 3, ...moved })], {
      status: 'pending',
      due_at: instant(5),
      next_action_at: instant(5),
      post_revision: 3,
      applied_revision: 3,
    });
    await sees([target('TargetCanceled', { reason: 'requested', postRevision: null })], {
      status: 'canceled',
      next_action_at: null,
      applied_revision: 0,
    });

    const started = target('TargetPublishStarted', claim);
    await sees([started], { status: 'publishing', attempts: 1, takeover: 0, next_action_at: instant(2) });
    const boundary = { ...claim, step: 'boundary', data: { key: 'k' }, deadline: instant(10) };
    await sees([started, target('TargetPublishCheckpointed', boundary)], {
      status: 'publishing',
      next_action_at: instant(3),
    });
    const taken = target('TargetPublishTakenOver', { attempt: 1, takeover: 1 });
    await sees([started, taken], { status: 'publishing', takeover: 1, next_action_at: instant(3) });
    const head = { ...out, segment: { index: 0, of: 2 } };
    const second = { ...out, externalId: 'x-2', permalink: null, segment: { index: 1, of: 2 } };
    const shown = { external_id: 'x-1', permalink: 'https://x.example/1', published_at: null };
    const segments = [target('TargetSegmentPublished', head), target('TargetSegmentPublished', second)];
    await sees([started, ...segments], { ...shown, status: 'publishing', next_action_at: instant(4) });
    await sees([started, ...segments, target('TargetFailed', { ...claim, failure })], { ...shown, status: 'failed' });
    await sees([started, target('TargetHandedToPlatform', { ...claim, externalId: 'n' })], { status: 'publishing' });

    const published = {
      status: 'published',
      external_id: 'x-1',
      permalink: 'https://x.example/1',
      published_at: instant(90),
      next_action_at: null,
      failure: null,
    };
    await sees([started, target('TargetPublished', out)], published);
    const comment = { code: 'forbidden', message: 'no right', platformCode: '403' };
    const issue = target('TargetFirstCommentFailed', comment);
    await sees([started, target('TargetPublished', out), issue], {
      ...published,
      first_comment_issue: { ...comment, at: instant(4) },
    });
    const posted = target('TargetFirstCommentPosted', { externalId: 'c' });
    await sees([started, target('TargetPublished', out), issue, posted], { ...published, first_comment_issue: null });
    await sees(
      [started, target('TargetPublished', out), target('TargetRemovedOnPlatform', { observedAt: instant(9) })],
      {
        ...published,
        revision: 3,
      },
    );

    await sees([target('TargetFailed', { ...claim, failure })], { status: 'failed', attempts: 1, failure });
    const limited = target('TargetRateLimited', { ...claim, retryAt: instant(30), failure });
    await sees([started, limited], {
      status: 'rate_limited',
      retry_at: instant(30),
      next_action_at: instant(30),
      failure,
    });
    await sees([started, limited, target('TargetRescheduled', moved)], {
      status: 'pending',
      retry_at: null,
      next_action_at: instant(5),
      failure: null,
    });
    await sees([started, limited, target('TargetRequeued', { by: 'schedule', dueAt: instant(31) })], {
      status: 'pending',
      due_at: instant(31),
      next_action_at: instant(31),
      retry_at: null,
    });
    await sees([started, target('TargetPublishDeferred', { ...claim, retryAt: instant(20), failure })], {
      status: 'pending',
      due_at: instant(20),
      next_action_at: instant(20),
      attempts: 1,
    });

    const unknown = target('TargetOutcomeUnknown', { ...claim, failure, reconcileAt: instant(12) });
    await sees([started, unknown], { status: 'outcome_unknown', next_action_at: instant(12), failure });
    const settled = { externalId: null, permalink: null, publishedAt: null, failure: null, by: 'reconcile' };
    const settle = (over: object) => target('TargetOutcomeSettled', { ...settled, ...over });
    await sees([started, unknown, settle({ outcome: 'absent' })], {
      status: 'pending',
      next_action_at: due,
      failure: null,
    });
    await sees([started, unknown, settle({ outcome: 'failed', failure })], { status: 'failed', failure });
    await sees([started, unknown, settle({ outcome: 'published', externalId: 'x-1', publishedAt: instant(90) })], {
      ...published,
      permalink: null,
    });
  });

  t('webhooks: registered, changed, off and on, rotated, deleted; what is asked of it changes nothing', async () => {
    const { id } = ids('id');
    const webhook = on('webhook', id);
    const fields = { url: 'https://hooks.example/in', events: ['post.*', 'target.failed'], description: 'ours' };
    const registered = webhook('WebhookRegistered', { ...fields, keyVersion: 'v1' });
    const first = { generation: 1, keyVersion: 'v1', createdAt: instant(0), expiresAt: null };
    await given(registered)
      .project(pool, webhooks)
      .sees([{ id, ...fields, active: true, disabled_reason: null, secrets: [first], deleted_at: null }]);
    const off = webhook('WebhookDisabled', { by: 'service', reason: 'failing' });
    const asked = [
      webhook('WebhookTestRequested', { eventType: 'webhook.test' }),
      webhook('WebhookResendRequested', { deliveryId: id, eventTime: instant(0) }),
      webhook('WebhookReplayRequested', { replayId: id, from: instant(0), to: instant(1), types: null }),
      webhook('WebhookReplayCanceled', { replayId: id }),
    ];
    await given(registered, webhook('WebhookUpdated', { url: 'https://b.example/', description: null }), off, ...asked)
      .project(pool, webhooks)
      .sees([
        {
          id,
          revision: 6,
          url: 'https://b.example/',
          events: fields.events,
          description: null,
          active: false,
          disabled_reason: 'failing',
          secrets: [first],
        },
      ]);
    const rotated = (generation: number, previousExpiresAt: string) =>
      webhook('WebhookSecretRotated', { generation, keyVersion: 'v2', previousExpiresAt });
    const lived = [registered, off, webhook('WebhookEnabled', {}), rotated(2, instant(90)), rotated(3, instant(91))];
    await given(...lived)
      .project(pool, webhooks)
      .sees([
        {
          id,
          active: true,
          disabled_reason: null,
          secrets: [
            { generation: 3, keyVersion: 'v2', createdAt: instant(4), expiresAt: null },
            { generation: 2, keyVersion: 'v2', createdAt: instant(3), expiresAt: instant(91) },
            { ...first, expiresAt: instant(90) },
          ],
        },
      ]);
    const inUse = async (now: string) => Object.fromEntries(await webhookKeyVersions(pool, now));
    assert.deepEqual(await inUse(instant(89)), { v1: 1, v2: 2 });
    assert.deepEqual(await inUse(instant(90)), { v2: 2 });
    assert.deepEqual(await inUse(instant(91)), { v2: 1 });
    await given(...lived, webhook('WebhookDeleted', {}))
      .project(pool, webhooks)
      .sees([{ id, active: false, secrets: [], deleted_at: instant(5) }]);
    assert.deepEqual(await inUse(instant(6)), {});
  });

  t('media: offered, registered, looked at, made; each need by its last word', async () => {
    const { id, clientId, postId } = ids('id', 'clientId', 'postId');
    const asset = on('media', id);
    const sha256 = 'a'.repeat(64);
    const rendition = '1'.repeat(32);
    const offer = {
      ...{ fileName: 'clip.mov', clientId: null, folder: null, contentType: 'video/quicktime', bytes: 6_000_000_000 },
      ...{ key: 'w/a/upload', expiresAt: instant(60) },
    };
    const details = { name: 'Clip', clientId, folder: 'Winter', altText: 'Snow', platforms: ['x', 'tiktok'] };
    const offered = asset('MediaUploadOffered', offer);
    const pending = {
      ...{ id, status: 'pending', kind: 'video', content_type: 'video/quicktime', size: { bytes: 6_000_000_000 } },
      ...{ name: 'clip.mov', registered_at: null, source: null, probe: null, needs: [], platforms: [] },
    };
    await given(offered).project(pool, media).sees([pending]);
    const file = { key: 'w/a/original', contentType: 'video/mp4', bytes: 900 };
    const seen = { key: 'w/a/1.mp4', contentType: 'video/mp4', bytes: 700, width: 720, height: 1_280, durationMs: 9 };
    const spec = {
      ...{ kind: 'video', mode: 'encode', width: 720, height: 1_280, fit: 'scale', fps: null, videoKbps: 900 },
      ...{ audio: null, maxBytes: null },
    };
    const why = { code: 'media_too_long', message: 'It is too long.' };
    const x = { platform: 'x', use: 'feed' };
    const tiktok = { platform: 'tiktok', use: 'feed' };
    const youtube = { platform: 'youtube', use: 'feed' };
    const poster = { key: 'w/a/poster.jpg', contentType: 'image/jpeg', bytes: 5, sha256, width: 720, height: 1_280 };
    const begun = [
      offered,
      asset('MediaRegistered', details),
      asset('MediaStored', { ...file, sha256, kind: 'video' }),
      asset('MediaProbed', { probe: fittingProbe('video') }),
      asset('MediaRenditionsRequested', { needs: [youtube, x], for: { kind: 'post', id: postId } }),
      asset('MediaRenditionsPlanned', {
        initial: true,
        needs: [
          { ...tiktok, rendition: null },
          { ...x, rendition },
        ],
        renditions: [{ id: rendition, spec }],
      }),
      asset('MediaRenditionsRequested', { needs: [x], for: { kind: 'post', id: postId } }),
    ];
    const shown = {
      ...{ id, name: 'Clip', client_id: clientId, folder: 'Winter', alt_text: 'Snow', platforms: ['x', 'tiktok'] },
      ...{ content_type: 'video/mp4', size: { bytes: 900 }, source: { ...file, sha256 }, probe: fittingProbe('video') },
      registered_at: instant(1),
    };
    await given(...begun)
      .project(pool, media)
      .sees([
        {
          ...shown,
          revision: 6,
          status: 'transcoding',
          planned: true,
          needs: [
            { ...youtube, status: 'wanted' },
            { ...x, status: 'planned' },
            { ...tiktok, status: 'fits' },
          ],
        },
      ]);
    await given(
      ...begun,
      asset('MediaRenditionReady', { ...x, rendition, sha256, ...seen }),
      asset('MediaRenditionFailed', { ...youtube, rendition: null, failure: why }),
      asset('MediaTranscoded', { poster }),
    )
      .project(pool, media)
      .sees([
        {
          ...shown,
          status: 'transcoded',
          needs: [
            { ...youtube, status: 'failed', failure: why },
            { ...x, status: 'ready', file: seen },
            { ...tiktok, status: 'fits' },
          ],
          poster: { key: 'w/a/poster.jpg', contentType: 'image/jpeg', bytes: 5 },
          failure: null,
        },
      ]);
    const requested = asset('MediaImportRequested', { url: 'https://cdn.example/clip.mov', ...details });
    await given(requested)
      .project(pool, media)
      .sees([{ id, status: 'transcoding', kind: null, content_type: null, size: null, registered_at: instant(0) }]);
    for (const [type, status] of [
      ['MediaFailed', 'failed'],
      ['MediaQuarantined', 'quarantined'],
    ] as const) {
      await given(requested, asset(type, { failure: why }))
        .project(pool, media)
        .sees([{ id, status, failure: why }]);
    }
    const deleted = [requested, asset('MediaDeleted', {})];
    await given(...deleted)
      .project(pool, media)
      .sees([{ id, status: 'deleted', registered_at: null, revision: 1 }]);
    await given(...deleted, asset('MediaFilesRemoved', {}))
      .project(pool, media)
      .sees([{ id, status: 'removed', registered_at: null, revision: 2 }]);
  });

  t('reports: defined, run, completed or failed, removed; a completed run stays', async () => {
    const { id, runId, other } = ids('id', 'runId', 'other');
    const report = on('report', id);
    const definition = {
      ...{ name: 'Monthly', kind: 'workspace', window: 'last_30_days', formats: ['pdf', 'csv'], schedule: null },
      filters: { clientId: null, socialAccountId: null, platform: null },
    };
    const days = { from: '2026-02-01', to: '2026-03-02', formats: ['pdf'] };
    const requested = (run: string) => report('ReportRunRequested', { runId: run, ...days, by: 'request' });
    const file = { format: 'pdf', key: `w/reports/${runId}/a.pdf`, contentType: 'application/pdf', bytes: 9 };
    const exports = [{ ...file, sha256: 'a'.repeat(64) }];
    const completeness = { complete: false, provisionalDays: ['2026-03-02'] };
    const completed = report('ReportRunCompleted', { runId, asOf: instant(9), exports, completeness });
    const failure = { code: 'report_failed', message: 'It could not be made.' };
    const { name, filters } = definition;
    const open = {
      runId,
      name,
      filters,
      status: 'running',
      ...days,
      by: 'request',
      startedAt: instant(1),
      asOf: null,
      exports: [],
    };
    const shown = { ...open, completedAt: null, failure: null };
    await given(report('ReportDefined', { definition }), requested(runId))
      .project(pool, reports)
      .sees([{ id, name: 'Monthly', span: 'last_30_days', formats: ['pdf', 'csv'], runs: [shown], removed_at: null }]);
    const done = { ...shown, status: 'completed', asOf: instant(9), exports, completedAt: instant(2), completeness };
    await given(
      report('ReportDefined', { definition }),
      requested(runId),
      completed,
      requested(other),
      report('ReportRunFailed', { runId: other, ...failure }),
      report('ReportDefined', { definition: { ...definition, name: 'Each month' } }),
      report('ReportRunFailed', { runId, ...failure }),
    )
      .project(pool, reports)
      .sees([
        {
          ...{ id, name: 'Each month', created_at: instant(0), removed_at: null },
          runs: [{ ...shown, runId: other, startedAt: instant(3), status: 'failed', failure }, done],
        },
      ]);
    const many = Array.from({ length: maxRuns + 1 }, () => randomUUID());
    await given(report('ReportDefined', { definition }), ...many.map(requested), report('ReportRemoved', {}))
      .project(pool, reports)
      .sees([{ id, removed_at: instant(maxRuns + 2) }]);
    const { rows } = await pool.query('select runs from read.reports where id = $1', [id]);
    assert.deepEqual(
      rows[0].runs.map((run: { runId: string }) => run.runId),
      many.slice(1).reverse(),
    );
  });

  t('every event of every model was projected above', () => {
    const kinds = projections.flatMap((one) => one.models.map((model) => model.kind));
    const all = kinds.flatMap((kind) => Object.keys(eventCatalogue[kind] ?? {}).map((type) => `${kind}/${type}`));
    assert.deepEqual(
      all.filter((one) => !projected.has(one)),
      // Has a test of its own: it needs two streams on two partitions.
      ['client/ClientErased'],
    );
  });
});
