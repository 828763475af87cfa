import { deepEqual, equal } from 'node:assert/strict';
import fc from 'fast-check';
import {
  bearsExternalRef,
  lacksIntent,
  type PostCommand,
  type PostState,
  post,
  publishedAtOf,
  statusOf,
  type TargetOutcome,
} from '#domain/post/post.ts';
import type { PostBody, PostEvent } from '#schemas/post.ts';
import { deciding, type Given } from '#test/support/deciding.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

const { given, state } = deciding(post);

const body = { content: 'hello', variants: [], campaignId: null } as unknown as PostBody;
const written = { clientId: 'c1', createdBy: { type: 'apikey', id: 'k1' }, body };
const plan = (number: number, ...targetIds: readonly string[]) => ({
  number,
  targets: targetIds.map((targetId) => ({
    targetId,
    accountId: `a-${targetId}`,
    clientId: 'c1',
    platform: 'x' as const,
    dueAt: '2026-01-01T00:00:00.000Z',
    scheduledLocal: null,
    timezone: 'UTC',
    jitterSeconds: 0,
    scheduleMode: 'managed' as const,
    scheduleModeReason: null,
  })),
});
const scheduled: PostEvent = { type: 'PostScheduled', data: { ...written, plan: plan(1, 'a', 'b', 'c') } };
const drafted: PostEvent = { type: 'PostDrafted', data: written };
const when = '2026-01-01T00:00:05.000Z';
const settled = (targetId: string, outcome: TargetOutcome, targetRevision = 5): PostEvent => ({
  type: 'PostTargetSettled',
  data: { targetId, targetRevision, outcome, publishedAt: outcome === 'published' ? when : null },
});
const reopened = (targetId: string, targetRevision: number): PostEvent => ({
  type: 'PostTargetReopened',
  data: { targetId, targetRevision },
});
const record = (targetId: string, outcome: TargetOutcome, targetRevision = 5): PostCommand => ({
  type: 'RecordTargetOutcome',
  targetId,
  targetRevision,
  outcome,
  publishedAt: outcome === 'published' ? when : null,
});
const skipped = (intentRevision: number, ...targetIds: readonly string[]): PostEvent => ({
  type: 'PostTargetsSkipped',
  data: { intentRevision, targetIds: [...targetIds], reason: 'late' },
});
const skip = (intentRevision: number, ...targetIds: readonly string[]) =>
  ({
    type: 'RecordSkipped',
    intentRevision,
    targets: targetIds.map((targetId) => ({ targetId, reason: 'late' })),
  }) as const;
const newer = { ...body, content: 'newer' };
const revised = (...targetIds: readonly string[]): PostEvent => ({
  type: 'PostRevised',
  data: { body: newer, changed: ['content'], targetIds: [...targetIds], times: null },
});
const discarded: PostEvent = { type: 'PostDiscarded', data: {} };
const intent = (...targetIds: readonly string[]): PostEvent => ({
  type: 'PostTargetsChanged',
  data: { change: { kind: 'cancel', reason: 'post_canceled' }, targetIds: [...targetIds] },
});
const saidPublished: PostEvent = { type: 'PostPublished', data: { publishedAt: when } };
const saidPartial: PostEvent = { type: 'PostPartiallyPublished', data: { publishedAt: when } };
const saidFailed: PostEvent = { type: 'PostFailed', data: {} };
const saidCanceled: PostEvent = { type: 'PostCanceled', data: { reason: 'targets_canceled' } };

suite('post', (t) => {
  t('has the reference of its body, as a draft and afterwards; a lapse of a claim changes nothing else', () => {
    const referred = { ...written, body: { ...body, externalRef: 'CMS-1' } };
    const draft: PostEvent = { type: 'PostDrafted', data: referred };
    const lapsed: PostEvent = { type: 'PostExternalRefClaimLapsed', data: { externalRef: 'CMS-2' } };
    const live: PostEvent = { type: 'PostScheduled', data: { ...referred, plan: plan(1, 'a') } };
    for (const events of [[draft], [live], [draft, lapsed], [live, lapsed]]) {
      equal(bearsExternalRef(state(events), 'CMS-1'), true);
      equal(bearsExternalRef(state(events), 'cms-1'), false);
      const lapse = { type: 'LapseExternalRefClaim', externalRef: 'CMS-2' } as const;
      given(events)
        .when(lapse)
        .then([lapsed], { again: [lapsed] });
    }
    for (const events of [[], [lapsed], [drafted]]) equal(bearsExternalRef(state(events), 'CMS-1'), false);
    deepEqual(state([lapsed]), post.initial);
    deepEqual(state([draft, lapsed]), state([draft]));
    deepEqual(state([live, lapsed]), state([live]));
    deepEqual(post.fences, ['PostExternalRefClaimLapsed', 'PostAbandoned']);
  });

  t('that lost the places of a quota stays as it is; the pending write conflicts', () => {
    const abandoned: PostEvent = { type: 'PostAbandoned', data: {} };
    const live: PostEvent = { type: 'PostScheduled', data: { ...written, plan: plan(1, 'a') } };
    for (const events of [[], [drafted], [live]]) {
      given(events)
        .when({ type: 'Abandon' })
        .then([abandoned], { again: [abandoned] });
      deepEqual(state([...events, abandoned]), state(events));
    }
  });

  t('is drafted once, and replaced while it is a draft', () => {
    const other = { ...body, content: 'other' };
    given([])
      .when({ type: 'Draft', ...written })
      .then([drafted]);
    given([drafted])
      .when({ type: 'ReplaceDraft', body: other })
      .then([{ type: 'DraftReplaced', data: { body: other } }]);
    given([drafted]).when({ type: 'ReplaceDraft', body }).then([]);
    given([]).when({ type: 'ReplaceDraft', body }).refused('not_found');
    given([scheduled]).when({ type: 'ReplaceDraft', body: other }).refused('post_not_draft');
  });

  t('is scheduled once, with the next plan', () => {
    const command = { type: 'Schedule', commandId: 'one', ...written, plan: plan(1, 'a', 'b', 'c') } as const;
    given([]).when(command).then([scheduled]);
    given([drafted]).when(command).then([scheduled]);
    given([scheduled])
      .when({ ...command, commandId: 'another' })
      .refused('post_not_draft');
    given([drafted])
      .when({ ...command, plan: plan(2, 'a') })
      .refused('revision_mismatch');
  });

  t('records the outcome of the whole when the last target is settled, and not before', () => {
    given([scheduled])
      .when(record('a', 'published'))
      .then([settled('a', 'published')]);
    const two = [scheduled, settled('a', 'published'), settled('b', 'published')];
    given(two)
      .when(record('c', 'published'))
      .then([settled('c', 'published'), saidPublished]);
    given(two)
      .when(record('c', 'failed'))
      .then([settled('c', 'failed'), saidPartial]);
    given(two)
      .when(record('c', 'canceled'))
      .then([settled('c', 'canceled'), saidPublished]);
    const failing = [scheduled, settled('a', 'failed'), settled('b', 'canceled')];
    given(failing)
      .when(record('c', 'failed'))
      .then([settled('c', 'failed'), saidFailed]);
    const leaving = [scheduled, settled('a', 'canceled'), settled('b', 'canceled')];
    given(leaving)
      .when(record('c', 'canceled'))
      .then([settled('c', 'canceled'), saidCanceled]);
  });

  t('its state follows from its targets', () => {
    const shown = (...events: readonly PostEvent[]) => statusOf(state([scheduled, ...events]));
    equal(statusOf(state([])), null);
    equal(statusOf(state([drafted])), 'draft');
    equal(shown(), 'scheduled');
    equal(shown(settled('a', 'canceled')), 'scheduled');
    equal(shown(settled('a', 'failed')), 'publishing');
    equal(shown(settled('a', 'published')), 'publishing');
    equal(shown(settled('a', 'canceled'), settled('b', 'canceled'), settled('c', 'canceled')), 'canceled');
    equal(shown(settled('a', 'failed'), settled('b', 'failed'), settled('c', 'failed')), 'failed');
    equal(shown(settled('a', 'failed'), settled('b', 'published'), settled('c', 'canceled')), 'partially_published');
    equal(publishedAtOf(state([scheduled, settled('b', 'published')])), when);
    equal(publishedAtOf(state([scheduled, settled('b', 'failed')])), null);
    equal(publishedAtOf(state([drafted])), null);
    const earlier = '2026-01-01T00:00:03.000Z';
    const first: PostEvent = {
      type: 'PostTargetSettled',
      data: { targetId: 'b', targetRevision: 5, outcome: 'published', publishedAt: earlier },
    };
    equal(publishedAtOf(state([scheduled, settled('a', 'published'), first])), earlier);
  });

  t('an outcome that is old, of an unknown target, or without a plan gives no event', () => {
    given([scheduled, settled('a', 'failed', 5)])
      .when(record('a', 'published', 5))
      .then([]);
    given([scheduled, settled('a', 'failed', 5)])
      .when(record('a', 'published', 4))
      .then([]);
    given([scheduled]).when(record('z', 'published')).then([]);
    given([scheduled]).when({ type: 'ReopenTarget', targetId: 'z', targetRevision: 9 }).then([]);
    given([scheduled])
      .when(record('a', 'failed', 0))
      .then([settled('a', 'failed', 0)]);
    given([drafted]).when(record('a', 'published')).then([]);
    given([drafted]).when({ type: 'ReopenTarget', targetId: 'a', targetRevision: 9 }).then([]);
  });

  t('a requeued target is unsettled again; a target that was never settled is unchanged', () => {
    const reopen = { type: 'ReopenTarget', targetId: 'a', targetRevision: 6 } as const;
    given([scheduled, settled('a', 'failed', 5)])
      .when(reopen)
      .then([reopened('a', 6)]);
    given([scheduled, settled('a', 'failed', 6)])
      .when(reopen)
      .then([]);
    given([scheduled]).when(reopen).then([]);
    given([scheduled, settled('a', 'failed', 5), reopened('a', 6)])
      .when(record('a', 'failed', 6))
      .then([]);
  });

  t('partial and canceled are recorded at most once; published or failed may follow a retry', () => {
    const partial = [
      scheduled,
      settled('a', 'published'),
      settled('b', 'published'),
      settled('c', 'failed'),
      saidPartial,
    ];
    const again = [...partial, reopened('c', 6)];
    equal(statusOf(state(again)), 'publishing');
    given(again)
      .when(record('c', 'failed', 8))
      .then([settled('c', 'failed', 8)]);
    given(again)
      .when(record('c', 'published', 8))
      .then([settled('c', 'published', 8), saidPublished]);
    given(again)
      .when(record('c', 'canceled', 8))
      .then([settled('c', 'canceled', 8), saidPublished]);
    const failing = [scheduled, settled('a', 'canceled'), settled('b', 'canceled'), settled('c', 'failed'), saidFailed];
    given([...failing, reopened('c', 6)])
      .when(record('c', 'failed', 8))
      .then([settled('c', 'failed', 8), saidFailed]);
    given([...failing, reopened('c', 6)])
      .when(record('c', 'canceled', 8))
      .then([settled('c', 'canceled', 8), saidCanceled]);
    const leaving = [scheduled, settled('a', 'canceled'), settled('b', 'canceled'), settled('c', 'canceled')];
    given([...leaving, saidCanceled, reopened('c', 6)])
      .when(record('c', 'canceled', 8))
      .then([settled('c', 'canceled', 8)]);
  });

  t('cancels by an intent that names its open targets once', () => {
    const cancel = { type: 'CancelTargets', targetIds: ['a', 'b', 'z'], reason: 'post_canceled' } as const;
    given([scheduled])
      .when(cancel)
      .then([intent('a', 'b')]);
    given([scheduled, settled('a', 'published')])
      .when(cancel)
      .then([intent('b')]);
    given([scheduled, intent('a')])
      .when(cancel)
      .then([intent('b')]);
    given([drafted]).when(cancel).then([]);
    given([scheduled, settled('a', 'published'), settled('b', 'failed')])
      .when(cancel)
      .then([]);
  });

  t('a target for which an intent came too late may be named by a new intent when it is open again', () => {
    const late = skipped(1, 'a');
    const events = [scheduled, intent('a', 'b'), late];
    given(events)
      .when({ type: 'CancelTargets', targetIds: ['a', 'b'], reason: 'post_canceled' })
      .then([intent('a')]);
    given([scheduled, intent('a', 'b')])
      .when(skip(1, 'a', 'z'))
      .then([late]);
    given(events).when(skip(1, 'a')).then([]);
    given(events).when(skip(7, 'a')).then([]);
  });

  t('an intent that came too late for a target leaves the other intents as they are', () => {
    const events = [scheduled, intent('a'), intent('b')];
    given(events)
      .when(skip(2, 'a', 'b'))
      .then([skipped(2, 'b')]);
    given([drafted]).when(skip(2, 'a')).then([]);
    given([scheduled, intent('a', 'b', 'c')])
      .when({ ...skip(1, 'a', 'b', 'c'), targets: [...skip(1, 'a', 'c').targets, { targetId: 'b', reason: 'other' }] })
      .then([
        skipped(1, 'a', 'c'),
        { type: 'PostTargetsSkipped', data: { intentRevision: 1, targetIds: ['b'], reason: 'other' } },
      ]);
    const after = state([...events, skipped(2, 'b')]);
    deepEqual(after.status === 'live' && after.intents.map((one) => one.skipped), [[], ['b']]);
  });

  t('lacks an intent that names a target and was neither applied to it nor came too late', () => {
    const lacks = (events: readonly PostEvent[], id: string, applied: number): boolean => {
      const now = state(events);
      return now.status === 'live' && lacksIntent(now, id, applied);
    };
    const events = [scheduled, intent('a'), revised('a', 'b')];
    deepEqual(
      [-1, 0, 1, 2].map((applied) => lacks(events, 'a', applied)),
      [true, true, true, false],
    );
    deepEqual(
      [0, 1, 2].map((applied) => lacks(events, 'b', applied)),
      [true, true, false],
    );
    equal(lacks(events, 'c', -1), false);
    equal(lacks([scheduled], 'a', -1), false);
    equal(lacks([...events, skipped(2, 'b')], 'b', -1), false);
    equal(lacks([...events, skipped(2, 'b')], 'a', 1), true);
  });

  t('events that do not fit are ignored', () => {
    const replaced: PostEvent = { type: 'DraftReplaced', data: { body: { ...body, content: 'other' } } };
    deepEqual(state([scheduled, replaced]), state([scheduled]));
    for (const event of [replaced, discarded, settled('a', 'failed'), intent('a'), revised('a'), saidPartial]) {
      deepEqual(state([event]), post.initial);
    }
    deepEqual(state([drafted, settled('a', 'failed')]), state([drafted]));
  });

  t('is revised once by one command: the new content, for the targets that are named', () => {
    const command = {
      type: 'Revise',
      commandId: 'one',
      body: newer,
      changed: ['content'],
      targetIds: ['a', 'b'],
      times: null,
    } as const;
    given([scheduled])
      .when(command)
      .then([revised('a', 'b')]);
    // Another command may say the same again: a failed target is tried again by it.
    given([scheduled, revised('a', 'b')])
      .when(command)
      .then([revised('a', 'b')]);
    given([scheduled, intent('c')])
      .when(command)
      .then([revised('a', 'b')]);
    const [first, second] = plan(1, 'a', 'b').targets.map(({ targetId: _id, accountId: _account, ...time }) => {
      const { clientId: _client, platform: _platform, ...rest } = time;
      return rest;
    });
    const times = [first, second].flatMap((one) => one ?? []);
    given([scheduled])
      .when({ ...command, times })
      .then([{ type: 'PostRevised', data: { body: newer, changed: ['content'], targetIds: ['a', 'b'], times } }]);
    given([scheduled])
      .when({ ...command, targetIds: [] })
      .refused('target_not_pending', 'No target of the post can be changed any more.');
    given([drafted]).when(command).refused('post_not_scheduled', 'A draft is replaced, not revised.');
    given([drafted, discarded]).when(command).refused('not_found', 'There is no such post.');
    given([]).when(command).refused('not_found');
  });

  t('a revision opens failed targets again: no outcome of the whole is recorded before theirs', () => {
    const failing = [scheduled, settled('a', 'failed'), settled('b', 'canceled')];
    const after = state([...failing, { ...revised('a', 'b', 'z'), commandId: 'one', at: when }]);
    equal(after.status === 'live' && after.body, newer);
    deepEqual(after.status === 'live' && after.targets.a, { revision: 5, outcome: null, publishedAt: null });
    deepEqual(after.status === 'live' && after.targets.b?.outcome, 'canceled');
    deepEqual(after.status === 'live' && Object.keys(after.targets), ['a', 'b', 'c']);
    deepEqual(after.status === 'live' && after.intents, [
      {
        kind: 'revise',
        revision: 3,
        eventId: 'event-3',
        commandId: 'one',
        body: newer,
        decidedAt: when,
        targetIds: ['a', 'b', 'z'],
        skipped: [],
        times: null,
      },
    ]);
    given([...failing, revised('a')])
      .when(record('c', 'published'))
      .then([settled('c', 'published')]);
    given([...failing, revised('a')])
      .when(record('a', 'failed', 5))
      .then([]);
    given([...failing, revised('a'), settled('c', 'published')])
      .when(record('a', 'published', 9))
      .then([settled('a', 'published', 9), saidPublished]);
    const published = [scheduled, settled('a', 'published'), revised('a')];
    deepEqual(statusOf(state(published)), 'publishing');
    deepEqual(state([drafted, revised('a')]), state([drafted]));
  });

  t('a revision and a cancel of the same targets are two intents', () => {
    const cancel = { type: 'CancelTargets', targetIds: ['a'], reason: 'post_canceled' } as const;
    given([scheduled, revised('a')])
      .when(cancel)
      .then([intent('a')]);
    given([scheduled, revised('a', 'b'), intent('a')])
      .when(skip(1, 'b'))
      .then([skipped(1, 'b')]);
  });

  t('is deleted: a draft is discarded, of a scheduled post every open target is canceled', () => {
    const removing = (...targets: readonly (readonly [id: string, appliedRevision: number])[]) =>
      ({
        type: 'Delete',
        unsettled: targets.map(([targetId, appliedRevision]) => ({ targetId, appliedRevision })),
      }) as const;
    const remove = removing();
    given([drafted]).when(remove).then([discarded]);
    given([drafted, discarded]).when(remove).then([]);
    given([]).when(remove).refused('not_found', 'There is no such post.');
    given([scheduled])
      .when(removing(['a', 0], ['b', 0], ['c', 0]))
      .then([intent('a', 'b', 'c')]);
    given([scheduled, settled('a', 'published'), intent('b')])
      .when(removing(['b', 0], ['c', 0]))
      .then([intent('c')]);
    given([scheduled, settled('a', 'published'), settled('b', 'failed'), settled('c', 'canceled')])
      .when(remove)
      .then([]);
    // The target was requeued, and this stream does not know it yet.
    given([scheduled, settled('a', 'failed')])
      .when(removing(['a', 0]))
      .then([intent('a')]);
    // The target has carried out the first cancel, and was not canceled: its network kept the post.
    given([scheduled, intent('a'), settled('a', 'failed')])
      .when(removing(['a', 1]))
      .then([intent('a')]);
    given([scheduled, intent('a', 'b'), skipped(1, 'b')])
      .when(removing(['a', 0], ['b', 0]))
      .then([intent('b')]);
  });

  t('joins one campaign at a time and leaves it, as a draft and later', () => {
    const changed = (campaignId: string | null, previousCampaignId: string | null): PostEvent => ({
      type: 'PostCampaignChanged',
      data: { campaignId, previousCampaignId },
    });
    const join = (campaignId: string) => ({ type: 'JoinCampaign', campaignId }) as const;
    const leave = (campaignId: string) => ({ type: 'LeaveCampaign', campaignId }) as const;
    for (const first of [drafted, scheduled]) {
      given([first])
        .when(join('c1'))
        .then([changed('c1', null)]);
      given([first, changed('c1', null)])
        .when(join('c2'))
        .then([changed('c2', 'c1')]);
      given([first, changed('c1', null)])
        .when(leave('c1'))
        .then([changed(null, 'c1')]);
      given([first, changed('c1', null)])
        .when(leave('c2'))
        .then([]);
      given([first]).when(leave('c1')).then([]);
      const now = state([first, changed('c1', null)]);
      deepEqual('body' in now ? now.body : null, { ...body, campaignId: 'c1' });
    }
    for (const events of [[], [drafted, discarded]]) {
      given(events).when(join('c1')).refused('not_found');
      given(events).when(leave('c1')).refused('not_found');
    }
    deepEqual(state([changed('c1', null)]), state([]));
  });

  t('a discarded draft is unknown to every other command', () => {
    const gone = [drafted, discarded];
    equal(statusOf(state(gone)), 'discarded');
    deepEqual(state([scheduled, discarded]), state([scheduled]));
    given(gone).when({ type: 'ReplaceDraft', body: newer }).refused('not_found', 'There is no such post.');
    given(gone)
      .when({ type: 'Schedule', commandId: 'one', ...written, plan: plan(1, 'a') })
      .refused('not_found', 'There is no such post.');
    given(gone).when(record('a', 'published')).then([]);
    given(gone)
      .when({ type: 'CancelTargets', targetIds: ['a'], reason: 'post_canceled' })
      .then([]);
    deepEqual(publishedAtOf(state(gone)), null);
  });

  t('a post that was canceled names its targets as the reason for the whole', () =>
    given([scheduled, intent('a', 'b', 'c'), settled('a', 'canceled'), settled('b', 'canceled')])
      .when(record('c', 'canceled'))
      .then([settled('c', 'canceled'), saidCanceled]),
  );

  t('a client that was archived is the reason given for the whole', () => {
    const archived: PostEvent = {
      type: 'PostTargetsChanged',
      data: { change: { kind: 'cancel', reason: 'client_archived' }, targetIds: ['a', 'b', 'c'] },
    };
    given([scheduled, archived, settled('a', 'canceled'), settled('b', 'canceled')])
      .when(record('c', 'canceled'))
      .then([settled('c', 'canceled'), { type: 'PostCanceled', data: { reason: 'client_archived' } }]);
  });

  t('disconnected accounts are the reason given for the whole only where they are the reason of every target', () => {
    const disconnected = (...targetIds: string[]): PostEvent => ({
      type: 'PostTargetsChanged',
      data: { change: { kind: 'cancel', reason: 'account_disconnected' }, targetIds },
    });
    const whole = (reason: 'account_disconnected' | 'targets_canceled', ...intents: readonly PostEvent[]) =>
      given([scheduled, ...intents, settled('a', 'canceled'), settled('b', 'canceled')])
        .when(record('c', 'canceled'))
        .then([settled('c', 'canceled'), { type: 'PostCanceled', data: { reason } }]);
    whole('account_disconnected', disconnected('a', 'b', 'c'));
    whole('account_disconnected', disconnected('a'), disconnected('b', 'c'));
    whole('targets_canceled', disconnected('a', 'b'));
    whole('targets_canceled', disconnected('a', 'b'), intent('c'));
    whole('targets_canceled', disconnected('a', 'b', 'c'), skipped(1, 'c'));
    whole('account_disconnected', disconnected('a', 'b', 'c'), skipped(1, 'c'), disconnected('c'));
  });

  t('any outcomes in any order: the outcome of the post is recorded when all are settled, and only then', () => {
    const seed = seeded('post news').seed;
    const updates: fc.Arbitrary<PostCommand> = fc
      .tuple(fc.constantFrom('a', 'b', 'c'), fc.integer({ min: 0, max: 12 }), fc.integer({ min: 0, max: 3 }))
      .map(([targetId, targetRevision, which]): PostCommand => {
        const outcome = (['published', 'failed', 'canceled'] as const)[which];
        return outcome === undefined
          ? { type: 'ReopenTarget', targetId, targetRevision }
          : record(targetId, outcome, targetRevision);
      });
    const wholes = ['PostPublished', 'PostPartiallyPublished', 'PostFailed', 'PostCanceled'];
    const asStatus: Readonly<Record<string, string>> = {
      PostPublished: 'published',
      PostPartiallyPublished: 'partially_published',
      PostFailed: 'failed',
      PostCanceled: 'canceled',
    };
    fc.assert(
      fc.property(fc.array(updates, { maxLength: 40 }), (all) => {
        const events: Given<PostEvent>[] = [scheduled];
        for (const one of all) {
          const decided = post.decide(one, state(events));
          events.push(...decided);
          const after: PostState = state(events);
          deepEqual(post.decide(one, after), []);
          const said = decided.filter(({ type }) => wholes.includes(type));
          equal(said.length <= 1, true);
          for (const { type } of said) equal(statusOf(after), asStatus[type]);
        }
        const times = (type: string) => events.filter((one) => one.type === type).length;
        equal(times('PostPartiallyPublished') <= 1 && times('PostCanceled') <= 1, true);
      }),
      { seed, numRuns: 2_000 },
    );
  });
});
