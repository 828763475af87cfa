import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { testTwinIdOf } from '#domain/ids.ts';
import { target } from '#domain/post-target/target.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { verifyWorkspace } from '#services/admin/audit-verify.ts';
import type { Admin } from '#services/admin/context.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { readyAsset } from '#test/support/assets.ts';
import { type Composer, composer, refused } from '#test/support/composing.ts';
import { type Answered, type Caller, startWorld, type World } from '#test/support/http.ts';
import { type Numbering, startNumbering } from '#test/support/numbering.ts';
import { TestKeys } from '#test/support/projecting.ts';
import { suite } from '#test/support/suite.ts';

/** What an auditor is told of a request for approval: that exactly what was shown went out, or that it did not. */

interface EvidenceTarget {
  readonly targetId: string;
  readonly status: string;
  readonly contentHash: string;
  readonly matches: boolean;
  readonly externalId: string | null;
  readonly publishedAt: string | null;
}

suite('the evidence of an approval', { timeoutMs: 60_000 }, (t) => {
  const keys = new TestKeys();
  let world: World;
  let by: Caller;
  let own: Composer;
  let numbering: Numbering | undefined;
  t.before(async () => {
    world = await startWorld({ codec: new EventCodec(keys) });
    by = world.tester;
    own = await composer(world, ['x', 'bluesky']);
    await by.patch(`/clients/${own.clientId}`, { approvalRequired: true });
  });
  t.after(async () => {
    await numbering?.stop();
    await world?.close();
  });

  const submitted = async (more: Readonly<Record<string, unknown>> = {}) => {
    const made = await by.post('/posts', own.body(more));
    assert.equal(made.status, 200, made.text);
    const { data, text } = made;
    assert.equal(data.status, 'pending_approval', text);
    return { postId: data.id, approvalId: String(data.approvalId), targets: data.targets as readonly { id: string }[] };
  };
  const evidenceOf = async (approvalId: string, caller = by): Promise<Answered> => {
    const answered = await caller.get(`/approvals/${approvalId}/evidence`);
    assert.equal(answered.status, 200, answered.text);
    return answered;
  };
  const approve = async (approvalId: string, comment?: string) => {
    const approved = await by.post(`/approvals/${approvalId}/approve`, comment === undefined ? {} : { comment });
    assert.equal(approved.status, 200, approved.text);
    return approved;
  };
  const targetsOf = ({ data }: Answered) => data.targets as readonly EvidenceTarget[];
  /** Lets a target go out, as the publisher records it. */
  const publish = async (
    targetId: string,
    postId: string,
    workspaceId = testTwinIdOf(world.workspaceId),
    only: string | null = null,
  ): Promise<void> => {
    const { revision } = await world.store.load(target, targetId);
    const claim = { attempt: 1, takeover: 0 };
    const boundary = { ...claim, step: 'boundary', data: null, deadline: new Date(Date.now() + 60_000).toISOString() };
    const publishedAt = new Date().toISOString();
    const events = [
      { type: 'TargetPublishStarted', data: claim },
      { type: 'TargetPublishCheckpointed', data: boundary },
      { type: 'TargetPublished', data: { ...claim, externalId: 'x-77', permalink: null, publishedAt } },
    ];
    const context = contextOf(world.operator, workspaceId);
    const stored = events.filter(({ type }) => only === null || type === only);
    await world.store.append(`target-${targetId}`, revision, stored, context, postId);
  };

  t('what was shown, with the hash of its files, who decided with what, and that it is what went out', async () => {
    const asset = await readyAsset(world.store, testTwinIdOf(world.workspaceId), 'image', { clientId: own.clientId });
    await world.settled();
    const { postId, approvalId, targets } = await submitted({ content: 'Shown.', mediaIds: [asset.id] });
    const approved = await approve(approvalId, 'Lovely.');
    const [first] = targets;
    await publish(first?.id ?? '', postId);
    const { data } = await evidenceOf(approvalId);
    const whole = data.approval as { readonly shown: readonly object[]; readonly contentHash: string };
    assert.deepEqual(whole, (await by.get(`/approvals/${approvalId}`)).data);
    assert.deepEqual(
      [data.contentHash, data.recountedHash, data.matches, data.targetsMatch],
      [whole.contentHash, whole.contentHash, true, true],
    );
    const [decision, ...others] = data.decisions as readonly Record<string, unknown>[];
    assert.equal(others.length, 0);
    assert.deepEqual(
      [decision?.type, decision?.actor, decision?.credential, decision?.comment, decision?.correlationId],
      [
        ...['ApprovalApproved', { type: 'apikey', id: world.testKey.id }, { type: 'api_key', id: world.testKey.id }],
        ...['Lovely.', approved.body.meta?.correlationId],
      ],
    );
    const out = targetsOf({ data } as unknown as Answered).find(({ targetId }) => targetId === first?.id);
    assert.deepEqual([out?.status, out?.externalId, out?.matches], ['published', 'x-77', true]);
    assert.ok(out?.publishedAt);
    const stranger = (await world.agency('Another')).tester;
    for (const id of [approvalId, randomUUID()])
      refused(await stranger.get(`/approvals/${id}/evidence`), 404, 'not_found');
  });

  t('a revise gives targets another content: each says whether it still has what was asked for', async () => {
    const { postId, approvalId, targets } = await submitted({ content: 'First.' });
    await approve(approvalId);
    const [first, second] = targets.map(({ id }) => id);
    await publish(first ?? '', postId);
    await world.settled();
    const revised = await by.post(`/posts/${postId}/revise`, { content: 'Second.' });
    assert.equal(revised.status, 200, revised.text);
    const asked = String(revised.data.approvalId);
    assert.notEqual(asked, approvalId);
    const former = await evidenceOf(approvalId);
    const byId = new Map(targetsOf(former).map((one) => [one.targetId, one]));
    assert.deepEqual([byId.get(first ?? '')?.matches, byId.get(second ?? '')?.matches], [true, false]);
    assert.deepEqual([former.data.matches, former.data.targetsMatch], [true, false]);
    assert.deepEqual(
      (former.data.decisions as readonly { readonly type: string; readonly reason: unknown }[]).map((one) => [
        one.type,
        one.reason,
      ]),
      [
        ['ApprovalApproved', null],
        ['ApprovalWithdrawn', 'post_changed'],
      ],
    );
    await approve(asked);
    const newest = await evidenceOf(asked);
    assert.deepEqual(
      targetsOf(newest).map(({ targetId, matches }) => [targetId, matches]),
      [[second, true]],
    );
    assert.equal(byId.get(second ?? '')?.contentHash, newest.data.contentHash);
  });

  t('a file that was deleted since was shown with its hash, which still holds', async () => {
    const asset = await readyAsset(world.store, testTwinIdOf(world.workspaceId), 'image', { clientId: own.clientId });
    await world.settled();
    const { postId, approvalId } = await submitted({ mediaIds: [asset.id] });
    const events = await world.store.readStream(`media-${asset.id}`);
    const context = contextOf(world.operator, testTwinIdOf(world.workspaceId));
    const revision = events.at(-1)?.revision ?? -1;
    await world.store.append(`media-${asset.id}`, revision, [{ type: 'MediaDeleted', data: {} }], context, asset.id);
    await world.settled();
    const { data } = await evidenceOf(approvalId);
    assert.deepEqual([data.matches, data.targetsMatch], [true, true]);
    const revised = await by.post(`/posts/${postId}/revise`, { content: 'Without the picture.', mediaIds: [] });
    assert.equal(revised.status, 200, revised.text);
    const next = await evidenceOf(String(revised.data.approvalId));
    assert.deepEqual([next.data.matches, next.data.targetsMatch], [true, true]);
  });

  t('changes were asked for: the decision stands, of a plan whose targets were canceled', async () => {
    const { postId, approvalId } = await submitted({ content: 'Too long.' });
    const sent = await by.post(`/approvals/${approvalId}/request-changes`, { comment: 'Shorter.' });
    assert.equal(sent.status, 200, sent.text);
    const { clientId: _client, ...body } = own.body({ content: 'Short.' });
    assert.equal((await by.patch(`/posts/${postId}`, body)).status, 200);
    const again = await by.post(`/posts/${postId}/publish`, {});
    const [former, next] = [await evidenceOf(approvalId), await evidenceOf(String(again.data.approvalId))];
    const [decision] = former.data.decisions as readonly Record<string, unknown>[];
    assert.deepEqual([decision?.type, decision?.comment], ['ApprovalChangesRequested', 'Shorter.']);
    assert.deepEqual(
      targetsOf(former).map(({ status, matches }) => [status, matches]),
      [
        ['canceled', true],
        ['canceled', true],
      ],
    );
    assert.deepEqual([next.data.decisions, next.data.targetsMatch], [[], true]);
    assert.notEqual(next.data.contentHash, former.data.contentHash);
  });

  t('to which guests it was shown, and who the guest says that they are until the client is erased', async () => {
    const { approvalId } = await submitted();
    const open = await by.post(`/approvals/${approvalId}/links`, {});
    const ended = await by.post(`/approvals/${approvalId}/links`, {});
    await by.delete(`/approvals/${approvalId}/links/${ended.data.linkId}`);
    const body = new URLSearchParams({ decision: 'approve', name: 'Gustav Guest', comment: '' });
    assert.equal((await fetch(String(open.data.url), { method: 'POST', body, redirect: 'manual' })).status, 303);
    await world.settled();
    const { data, text } = await evidenceOf(approvalId);
    const links = data.links as readonly { readonly linkId: string; readonly revokedAt: string | null }[];
    assert.deepEqual(
      links.map(({ linkId, revokedAt }) => [linkId, revokedAt !== null]),
      [
        [open.data.linkId, false],
        [ended.data.linkId, true],
      ],
    );
    const [decision] = data.decisions as readonly Record<string, unknown>[];
    assert.deepEqual(
      [decision?.guestName, decision?.linkId, decision?.credential],
      ['Gustav Guest', open.data.linkId, null],
    );
    assert.ok(!text.includes(String(open.data.token)) && !text.includes('keyVersion'));
    keys.destroy(own.clientId);
    assert.ok(!(await evidenceOf(approvalId)).text.includes('Gustav'));
  });

  t('a verification holds all of it against the events, and names each thing that was changed', async () => {
    const agency = await world.agency('Verified');
    const workspaceId = testTwinIdOf(agency.workspaceId);
    const client = await composer({ ...world, ...agency }, ['x', 'bluesky']);
    const { tester } = agency;
    await tester.patch(`/clients/${client.clientId}`, { approvalRequired: true });
    const bytes = Buffer.from('every byte of it');
    const asset = await readyAsset(world.store, workspaceId, 'image', { clientId: client.clientId, body: bytes });
    const put = (body: Buffer) =>
      world.deps.blobs.put(asset.key, body, { contentType: 'image/jpeg', bytes: body.length });
    await put(bytes);
    await world.settled();
    const send = async (content: string, isApproved: boolean) => {
      const { data, text } = await tester.post('/posts', client.body({ content, mediaIds: [asset.id] }));
      assert.equal(data?.status, 'pending_approval', text);
      if (isApproved) await tester.post(`/approvals/${String(data.approvalId)}/approve`, {});
      const [first] = data.targets as readonly { readonly id: string }[];
      const targetId = first?.id ?? '';
      await publish(targetId, data.id, workspaceId);
      return { postId: data.id, approvalId: String(data.approvalId), targetId };
    };
    const sent = await send('Held against events.', true);
    numbering = startNumbering(world);
    const { numbered } = numbering;
    const folder = mkdtempSync(path.join(tmpdir(), 'verify-'));
    const state = path.join(folder, 'state.json');
    const { deps, pool, eventStore, codec, store, log, secrets, operator } = world;
    const verified = async ({
      stop,
      ...pace
    }: {
      pageEvents: number;
      noteMs: number;
      stop?: number;
      expired?: ReadonlySet<string>;
    }) => {
      await world.settled();
      await numbered();
      const stopped = new AbortController();
      let noted = 0;
      const note = (): void => {
        noted += 1;
        if (noted === stop) stopped.abort(new Error('stopped'));
      };
      const admin = {
        ...{ pool, eventStore, codec, store, log, secrets, operator, analytics: null },
        ...{ blobs: deps.blobs, signal: stopped.signal, note },
      } as unknown as Admin;
      return verifyWorkspace(admin, workspaceId, state, pace);
    };
    const atOnce = { pageEvents: 500, noteMs: 60_000 };
    const found = async (): Promise<readonly string[]> => (await verified(atOnce)).findings;

    const whole = await verified(atOnce);
    assert.deepEqual(whole.findings, []);
    const { files, boundaries, releases, rows = 0, counts = 0 } = whole.counted;
    assert.deepEqual([files, boundaries, releases], [1, 1, 1]);
    assert.ok(rows > 8 && counts > 1);
    // One that is stopped in the middle goes on where its file says, and finds the same.
    await assert.rejects(verified({ pageEvents: 7, noteMs: 0, stop: 3 }), /stopped/);
    assert.ok(JSON.parse(readFileSync(state, 'utf8')).sequence < whole.events);
    assert.deepEqual(await verified({ pageEvents: 7, noteMs: 0 }), whole);
    writeFileSync(state, '{}');
    await assert.rejects(found(), /is not of a verification of this feed/);
    rmSync(state);

    const { rows: tables } = await pool.query<{ name: string; live: number }>(
      "select name, max(live) as live from ops.projections where name in ('posts', 'media', 'clients') group by name",
    );
    const live = new Map(tables.map((one) => [one.name, one.live]));
    /** Changes, sees it named, and takes the change back. */
    const named = async (change: string, back: string, findings: readonly RegExp[]) => {
      await pool.query(change);
      const said = await found();
      await pool.query(back);
      for (const [at, pattern] of findings.entries()) assert.match(said[at] ?? '', pattern, said.join('\n'));
      assert.equal(said.length, findings.length, said.join('\n'));
    };
    const clients = `read.clients_v${live.get('clients')}`;
    await named(
      `update ${clients} set name = name || '!' where id = '${client.clientId}'`,
      `update ${clients} set name = rtrim(name, '!') where id = '${client.clientId}'`,
      [/^the row [\w-]+ of clients is not what client-[\w-]+ says: name$/],
    );
    // No rule of ours drops events: one that the store lost was taken out, unless the auditor names the kind of its stream.
    await pool.query(`create table public.taken as select * from es.event_rows where stream = 'client-${client.clientId}'
      and revision = 1`);
    const taken = await pool.query('select id from public.taken');
    await pool.query('delete from es.event_rows where id = (select id from public.taken)');
    const lost = await found();
    assert.match(
      lost[0] ?? '',
      new RegExp(`^event \\d+ \\(ClientUpdated ${taken.rows[0].id} of client-[\\w-]+\\) is gone`),
    );
    const asExpired = await verified({ ...atOnce, expired: new Set(['client']) });
    assert.deepEqual([lost.length, asExpired.expired, asExpired.findings], [1, 1, []]);
    await pool.query('insert into es.event_rows select * from public.taken');
    await pool.query('drop table public.taken');
    assert.deepEqual(await found(), []);
    const media = `read.media_v${live.get('media')}`;
    const other = randomUUID();
    await named(
      `update ${media} set id = '${other}' where id = '${asset.id}'`,
      `update ${media} set id = '${asset.id}' where id = '${other}'`,
      [/of media is missing, which media-/, new RegExp(`the row ${other} of media is there, and no stream makes it`)],
    );
    const posts = `read.posts_v${live.get('posts')}`;
    await named(
      `update ${posts} set target_count = target_count + 1 where id = '${sent.postId}'`,
      `update ${posts} set target_count = target_count - 1 where id = '${sent.postId}'`,
      [new RegExp(`the row ${sent.postId} of posts counts other rows than there are`)],
    );
    await named(
      `create temp table gone as select * from ops.feed_events where workspace_id = '${workspaceId}' and sequence = 5;
       create table if not exists public.gone as table gone;
       delete from ops.feed_events where workspace_id = '${workspaceId}' and sequence = 5`,
      'insert into ops.feed_events table public.gone; drop table public.gone',
      [/^event 5 is missing in the feed$/, /^the feed lacks \w+ [\w-]+ of [\w-]+, which the store has$/],
    );
    await put(Buffer.from('other bytes, same'));
    assert.match((await found()).join(), /^the file [\w/.-]+ of media-[\w-]+ is not the one that was stored$/);
    await world.deps.blobs.delete(asset.key);
    assert.match((await found()).join(), /^the file [\w/.-]+ of media-[\w-]+ is not there$/);
    await put(bytes);

    const early = await send('Sent before anybody said yes.', false);
    const unreleased = `target-${early.targetId} was sent at revision \\d+, and approval ${early.approvalId} had not released it`;
    assert.match((await found()).join(), new RegExp(`^${unreleased}$`));
    await publish(sent.targetId, sent.postId, workspaceId, 'TargetPublishCheckpointed');
    assert.match(
      (await found()).join('\n'),
      new RegExp(`target-${sent.targetId} crossed the boundary of attempt 1 a second time, at revision \\d+`),
    );
    rmSync(folder, { recursive: true });
  });
});
