import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { testTwinIdOf } from '#domain/ids.ts';
import { target } from '#domain/post-target/target.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { readyAsset } from '#test/support/assets.ts';
import { type Composer, composer, refused } from '#test/support/composing.ts';
import { type Answered, type Caller, startWorld, type World } from '#test/support/http.ts';
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
  t.before(async () => {
    world = await startWorld({ codec: new EventCodec(keys) });
    by = world.tester;
    own = await composer(world, ['x', 'bluesky']);
    await by.patch(`/clients/${own.clientId}`, { approvalRequired: true });
  });
  t.after(() => world?.close());

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
  const publish = async (targetId: string, postId: string): Promise<void> => {
    const { revision } = await world.store.load(target, targetId);
    const claim = { attempt: 1, takeover: 0 };
    const boundary = { ...claim, step: 'boundary', data: null, deadline: new Date(Date.now() + 60_000).toISOString() };
    const publishedAt = new Date().toISOString();
    const events = [
      { type: 'TargetPublishStarted', data: claim },
      { type: 'TargetPublishCheckpointed', data: boundary },
      { type: 'TargetPublished', data: { ...claim, externalId: 'x-77', permalink: null, publishedAt } },
    ];
    const context = contextOf(world.operator, testTwinIdOf(world.workspaceId));
    await world.store.append(`target-${targetId}`, revision, events, context, postId);
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
});
