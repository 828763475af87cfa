/** A post whose changes wait for a person: what was released stays what goes out, is shown and is copied. */
import assert from 'node:assert/strict';
import { approval } from '#domain/approval.ts';
import { approvalIdOf, recycledPostIdOf, testTwinIdOf } from '#domain/ids.ts';
import { post } from '#domain/post/post.ts';
import { recycleLeadMs } from '#domain/post/post-recycle.ts';
import { type TargetCommand, target } from '#domain/post-target/target.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { recyclePost } from '#services/outcomes/recycles.ts';
import { tendApprovals } from '#services/workflows/posts/approvals.ts';
import { recordOutcomes } from '#services/workflows/posts/outcomes.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { readyAsset } from '#test/support/assets.ts';
import { type Composer, composedWorld, composer, refused } from '#test/support/composing.ts';
import type { Answered, Caller } from '#test/support/http.ts';
import { livingFor } from '#test/support/meddling.ts';
import { failure } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

const { world, tester: owner, composed: own } = await composedWorld(['x', 'bluesky']);
const late = await composer(world, ['x', 'bluesky']);
await owner.patch(`/clients/${late.clientId}`, { rules: { approvalLate: 'fail' } });
const memberId = await world.memberOf(world.workspaceId, 'creator');
const creator = (await world.keyOf(world.workspaceId, memberId, { mode: 'test' })).caller;

const first = 'Released by the owner.';
const asked = 'Asked for by a creator.';
const dayMs = 86_400_000;

interface Target {
  readonly id: string;
  readonly platform: string;
  readonly status: string;
  readonly content: string;
  readonly scheduledAt: string;
}
interface PendingRevision {
  readonly content: string;
  readonly approvalId: string;
  readonly targetIds: readonly string[];
  readonly [member: string]: unknown;
}
const targetsOf = ({ data }: Pick<Answered, 'data'>) => data.targets as readonly Target[];
const pendingOf = ({ data }: Pick<Answered, 'data'>) => data.pendingRevision as PendingRevision | null;
/** The released text, the one beside it, and the text of each target by its network. */
const texts = (answer: Pick<Answered, 'data'>) => ({
  released: answer.data.content,
  asked: pendingOf(answer)?.content ?? null,
  ...Object.fromEntries(targetsOf(answer).map(({ platform, content }) => [platform, content])),
});

suite('the two bodies of a post', (t) => {
  const context = () => contextOf(world.operator, testTwinIdOf(world.workspaceId));
  const get = async (id: string) => {
    await world.settled();
    return owner.get(`/posts/${id}`);
  };
  const revise = async (id: string, body: object, by: Caller = creator) => {
    const answer = await by.post(`/posts/${id}/revise`, body);
    assert.equal(answer.status, 200, answer.text);
    return answer;
  };
  const decide = async (approvalId: unknown, decision: 'approve' | 'reject' | 'request-changes') => {
    const answer = await owner.post(`/approvals/${approvalId}/${decision}`, { comment: 'So.' });
    assert.equal(answer.status, 200, answer.text);
  };
  /** As a publisher and the outcomes process would. */
  const settle = async (postId: string, targetId: string, outcome: 'published' | 'failed') => {
    const { state } = await world.store.load(target, targetId);
    assert.ok(state.status !== 'none');
    const claim = { attempt: state.common.attempts + 1, takeover: 0 };
    const out = { externalId: 'e', permalink: null, publishedAt: state.common.dueAt };
    const commands: readonly TargetCommand[] = [
      { type: 'Start', now: '2099-01-01T00:00:00.000Z' },
      outcome === 'failed'
        ? { type: 'RecordFailed', ...claim, failure }
        : { type: 'RecordPublished', ...claim, ...out },
    ];
    for (const command of commands) {
      await execute(world.store, target, targetId, command, context(), { partitionKey: postId });
    }
    await recordOutcomes(world.store, await world.store.readStream(`target-${targetId}`));
  };
  /** Nobody has approved the target until it is due, and its client lets it fail then. */
  const lapse = async (postId: string, id: string) => {
    const now = new Date(Date.now() + dayMs).toISOString();
    await execute(world.store, target, id, { type: 'LapseApproval', now }, context(), { partitionKey: postId });
    await recordOutcomes(world.store, await world.store.readStream(`target-${id}`));
  };
  /** Out on x, and failed on bluesky: a revise reaches what failed. */
  const partlyOut = async (by: Composer = own) => {
    const made = await owner.post('/posts', by.body({ content: first }));
    assert.equal(made.status, 200, made.text);
    const { id } = made.data;
    const of = (platform: string) => targetsOf(made).find((one) => one.platform === platform)?.id ?? '';
    await settle(id, of('x'), 'published');
    await settle(id, of('bluesky'), 'failed');
    await world.settled();
    return { id, x: of('x'), bluesky: of('bluesky') };
  };
  /** The copy that the service makes once it is due. */
  const copyOf = async (id: string) => {
    const now = () => Date.now() + 3 * dayMs - recycleLeadMs;
    assert.equal(await recyclePost({ store: world.store, pool: world.pool, now }, id), true, 'no copy was made');
    return get(recycledPostIdOf(id, 1));
  };

  t('a revise that waits stands beside what was released, and goes out once it is approved', async () => {
    const { id, bluesky } = await partlyOut();
    const revised = await revise(id, { content: asked, aiDisclosure: true });
    assert.deepEqual(texts(revised), { released: first, asked, x: first, bluesky: asked });
    const shown = await get(id);
    const { revise: _outcome, ...answered } = revised.data;
    assert.deepEqual(shown.data, answered);
    assert.deepEqual([shown.data.aiDisclosure, pendingOf(shown)?.aiDisclosure], [false, true]);
    assert.deepEqual([pendingOf(shown)?.approvalId, pendingOf(shown)?.targetIds], [shown.data.approvalId, [bluesky]]);
    const request = await owner.get(`/approvals/${shown.data.approvalId}`);
    assert.equal((request.data.post as { content: string }).content, asked);
    const listed = (await owner.get(`/post-targets?postId=${id}`)).rows as unknown as readonly Target[];
    assert.deepEqual(listed.map(({ content }) => content).sort(), [asked, first]);
    assert.equal((await owner.get(`/post-targets/${bluesky}`)).data.content, asked);
    await decide(shown.data.approvalId, 'approve');
    assert.deepEqual(texts(await get(id)), { released: asked, asked: null, x: first, bluesky: asked });
    assert.equal((await get(id)).data.aiDisclosure, true);
  });

  t('a rejection drops it, and the next revise starts from what was released', async () => {
    const { id } = await partlyOut();
    const revised = await revise(id, { content: asked });
    await decide(revised.data.approvalId, 'reject');
    assert.deepEqual(texts(await get(id)), { released: first, asked: null, x: first, bluesky: asked });
    refused(await creator.post(`/posts/${id}/revise`, { aiDisclosure: true }), 409, 'target_not_pending');
  });

  t('what was rejected is not revised further, nor tried again, where the rejection cancels no target', async () => {
    const { id, bluesky } = await partlyOut(late);
    const revised = await revise(id, { content: asked, schedule: { type: 'now' } });
    await lapse(id, bluesky);
    refused(await owner.post(`/post-targets/${bluesky}/retry`, {}), 409, 'target_not_retryable');
    assert.deepEqual(texts(await get(id)), { released: first, asked, x: first, bluesky: asked });
    // The author asks for the same again, and is told no.
    const again = await revise(id, { schedule: { type: 'now' } });
    assert.equal(pendingOf(again)?.content, asked);
    assert.notEqual(again.data.approvalId, revised.data.approvalId);
    await decide(again.data.approvalId, 'reject');
    const { data } = await get(id);
    assert.deepEqual([data.content, data.pendingRevision], [first, null]);
  });

  t('while it waits, and after changes were requested, a revise starts from it', async () => {
    const { id } = await partlyOut();
    const one = await revise(id, { content: asked });
    const two = await revise(id, { aiDisclosure: true });
    assert.notEqual(one.data.approvalId, two.data.approvalId);
    assert.deepEqual([two.data.content, two.data.aiDisclosure], [first, false]);
    assert.deepEqual([pendingOf(two)?.content, pendingOf(two)?.aiDisclosure], [asked, true]);
    await decide(two.data.approvalId, 'request-changes');
    assert.deepEqual(texts(await get(id)), { released: first, asked, x: first, bluesky: asked });
    const three = await revise(id, { content: `${asked} Shorter.` });
    assert.deepEqual([pendingOf(three)?.content, pendingOf(three)?.aiDisclosure], [`${asked} Shorter.`, true]);
  });

  t('wherever a process dies that withdraws several requests, the next one withdraws the rest', async () => {
    for (let appends = 0; ; appends += 1) {
      const { data: made } = await owner.post('/posts', own.body({ content: first }));
      for (let request = 1; request <= 4; request += 1) {
        // Each dies behind the append of the post and of its targets: no request is made.
        await livingFor(world, 3, () => creator.post(`/posts/${made.id}/revise`, { content: `${asked} ${request}` }));
      }
      const { survived } = await livingFor(world, appends, () => tendApprovals(world.store, made.id).catch(() => null));
      await tendApprovals(world.store, made.id);
      const { state } = await world.store.load(post, made.id);
      const count = state.status === 'live' ? state.requests : 0;
      assert.ok(count > 2, `${count} requests`);
      const statuses = await Promise.all(
        Array.from({ length: count }, async (_, n) => {
          return (await world.store.load(approval, approvalIdOf(made.id, n + 1))).state.status;
        }),
      );
      const expected = statuses.map((_, n) => (n === count - 1 ? 'pending' : 'withdrawn'));
      assert.deepEqual(statuses, expected, `died before append ${appends}`);
      if (survived) break;
    }
  });

  t('the answer to a revise warns of what it asks for', async () => {
    const variants = [{ platform: 'linkedin', contentOverride: 'Nobody reads this.' }];
    const held = await revise((await partlyOut()).id, { variants });
    const free = await revise((await partlyOut()).id, { variants }, owner);
    interface Meta {
      readonly warnings?: readonly { readonly code: string; readonly path?: string }[];
    }
    const pathsOf = ({ body }: Answered) =>
      ((body.meta as Meta).warnings ?? []).flatMap(({ code, path }) =>
        code === 'member_without_effect' ? [path] : [],
      );
    assert.deepEqual([pendingOf(held) === null, pendingOf(free)], [false, null]);
    assert.deepEqual([pathsOf(held), pathsOf(free)], [['/variants/0'], ['/variants/0']]);
  });

  t('nothing is out yet: the draft that comes back is what was asked for', async () => {
    const made = await creator.post('/posts', own.body({ content: first }));
    assert.deepEqual([made.data.status, pendingOf(made)], ['pending_approval', null]);
    const revised = await revise(made.data.id, { content: asked });
    assert.deepEqual(texts(revised), { released: asked, asked: null, x: asked, bluesky: asked });
    await decide(revised.data.approvalId, 'request-changes');
    const draft = await get(made.data.id);
    assert.deepEqual([draft.data.status, draft.data.content, pendingOf(draft)], ['draft', asked, null]);
  });

  t('a cancel of the targets that wait drops it', async () => {
    const { id, bluesky } = await partlyOut();
    await revise(id, { content: asked });
    assert.equal((await owner.post(`/post-targets/${bluesky}/cancel`, {})).status, 200);
    await recordOutcomes(world.store, await world.store.readStream(`target-${bluesky}`));
    assert.deepEqual(texts(await get(id)), { released: first, asked: null, x: first, bluesky: asked });
  });

  t('a file that only waits for an approval is in use', async () => {
    const { id } = await partlyOut();
    const { id: asset } = await readyAsset(world.store, testTwinIdOf(world.workspaceId), 'image');
    await world.settled();
    await revise(id, { mediaIds: [asset] });
    await world.settled();
    refused(await owner.delete(`/media/${asset}`), 409, 'media_in_use');
  });

  t('a campaign is of the whole post, whichever of its bodies goes out', async () => {
    const { id } = await partlyOut();
    const campaign = (await owner.post('/campaigns', { name: `C ${id}`, clientId: own.clientId })).data;
    const revised = await revise(id, { content: asked });
    const joined = await owner.post(`/campaigns/${campaign.id}/assign`, { postIds: [id] });
    assert.equal(joined.status, 200, joined.text);
    assert.deepEqual((await get(id)).data.campaignId, campaign.id);
    await decide(revised.data.approvalId, 'approve');
    const released = await get(id);
    assert.deepEqual([released.data.content, released.data.campaignId], [asked, campaign.id]);
  });

  const unseen = 'Nobody was shown this for X.';
  const variants = [{ platform: 'x', contentOverride: unseen }];

  t('an approval of some targets lets the same content out on no other', async () => {
    const made = await owner.post('/posts', own.body({ content: first }));
    const { id } = made.data;
    const x = targetsOf(made).find(({ platform }) => platform === 'x')?.id ?? '';
    const start = { type: 'Start', now: '2099-01-01T00:00:00.000Z' } as const;
    await execute(world.store, target, x, start, context(), { partitionKey: id });
    const revised = await revise(id, { content: asked, variants });
    await world.settled();
    const request = await owner.get(`/approvals/${revised.data.approvalId}`);
    const shown = request.data.shown as readonly { readonly value: string; readonly unsent: string | null }[];
    assert.notEqual(shown.find(({ value }) => value === unseen)?.unsent, null);
    await decide(revised.data.approvalId, 'approve');
    const failed = { type: 'RecordFailed', attempt: 1, takeover: 0, failure } as const;
    await execute(world.store, target, x, failed, context(), { partitionKey: id });
    await recordOutcomes(world.store, await world.store.readStream(`target-${x}`));
    // Other times alone: whoever approved the content was told that X gets nothing of it.
    const again = await revise(id, { schedule: { type: 'now' } });
    assert.deepEqual(new Set(targetsOf(again).map(({ status }) => status)), new Set(['awaiting_approval']));
  });

  t('a copy of what was approved for some accounts alone waits where others would get another content', async () => {
    for (const [change, status] of [
      [{ content: asked, variants }, 'pending_approval'],
      [{ variants: [{ platform: 'bluesky', contentOverride: asked }] }, 'scheduled'],
    ] as const) {
      const { id, bluesky } = await partlyOut();
      await owner.request('PUT', `/posts/${id}/recycle`, { body: { everyDays: 1 } });
      const revised = await revise(id, change);
      await decide(revised.data.approvalId, 'approve');
      // A revise of times alone keeps the approval, and so what it was about.
      await revise(id, { schedule: { type: 'now' } });
      await settle(id, bluesky, 'published');
      assert.equal((await copyOf(id)).data.status, status);
    }
  });

  for (const decision of [null, 'reject', 'request-changes', 'approve'] as const) {
    const content = decision === 'approve' ? asked : first;
    t(`a copy takes what was released (${decision ?? 'nobody decided'})`, async () => {
      const { id, bluesky } = await partlyOut();
      const set = await owner.request('PUT', `/posts/${id}/recycle`, { body: { everyDays: 1 } });
      assert.ok(set.data.nextAt, set.text);
      const revised = await revise(id, { content: asked });
      if (decision !== null) await decide(revised.data.approvalId, decision);
      // What was approved goes out before the copy does.
      if (decision === 'approve') await settle(id, bluesky, 'published');
      const copy = await copyOf(id);
      assert.deepEqual([copy.status, copy.data.content], [200, content], copy.text);
    });
  }
});
