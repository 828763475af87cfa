import { deepEqual, equal } from 'node:assert/strict';
import { readRules } from '#domain/client-rules.ts';
import { type ComposedTarget, composedWarnings, ruledOn, unusedAltTexts } from '#domain/post/preview.ts';
import type { Platform } from '#schemas/common.ts';
import type { PostBody, Variant } from '#schemas/post.ts';
import { postBody } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

const variant = (platform: Platform, over: Partial<Variant> = {}): Variant => ({
  ...{ platform, contentOverride: null, mediaIdsOverride: null, overrides: {} },
  ...over,
});
const to = (platform: Platform, over: Partial<ComposedTarget> = {}): ComposedTarget => ({
  ...{ accountId: `of-${platform}`, platform, scheduledLocal: null, timezone: 'UTC' },
  ...{ scheduleMode: 'managed', scheduleModeReason: null },
  ...over,
});
const warned = (
  over: Partial<PostBody>,
  targets: readonly ComposedTarget[] | null = [to('x')],
  more: { readonly isHeld?: boolean; readonly zone?: 'sent' } = {},
) =>
  composedWarnings(postBody(over), { targets, isHeld: more.isHeld ?? null, zone: more.zone ?? 'stored' }).map(
    ({ code, path, message, platform, accountId }) => [code, path, message, platform, accountId],
  );
const idle = (path: string, message: string) => ['member_without_effect', path, message, null, null];
const schedule = (over: Partial<PostBody['schedule']>): Partial<PostBody> => ({
  schedule: { ...postBody().schedule, type: 'at', ...over } as PostBody['schedule'],
});

suite('what of a body changes nothing', (t) => {
  t('a body that is read as a whole has no warning', () => {
    deepEqual(warned({}), []);
    deepEqual(warned({}, null), []);
    deepEqual(warned({}, []), []);
  });

  t('networks beside a list of accounts, and an approval that nobody requires', () => {
    const selection = { mode: 'accounts', clientId: null, accountIds: ['a'], platforms: ['x'] } as const;
    deepEqual(warned({ targetSelection: { ...selection, accountIds: ['a'], platforms: ['x'] } }), [
      idle('/targets/platforms', 'narrows only a group: with mode accounts the post goes to every listed account'),
    ]);
    deepEqual(warned({ targetSelection: { ...selection, accountIds: ['a'], platforms: null } }), []);
    deepEqual(warned({ targetSelection: { ...selection, mode: 'group', accountIds: null, platforms: ['x'] } }), []);
    deepEqual(warned({ requestApproval: true }, [to('x')], { isHeld: false }), [
      ['approval_not_required', '/requestApproval', 'no approval is required, so it changes nothing', null, null],
    ]);
    deepEqual(warned({ requestApproval: true }, [to('x')], { isHeld: true }), []);
    deepEqual(warned({}, [to('x')], { isHeld: false }), []);
  });

  t('a setting that the network does not have, with the nearest name or its owner', () => {
    const overrides = { firstComent: 'x', zzz: 1, gone: null, 'a/b~c': 1, ['k'.repeat(101)]: 1, firstComment: 'x' };
    const none = 'X has no setting of this name and does not get it';
    deepEqual(
      warned({ variants: [variant('x', { overrides })] }).map(([code, path, message, platform]) => [
        ...[code, path, message, platform],
      ]),
      [
        ['unknown_override', '/variants/0/overrides/firstComent', `${none}; did you mean \`firstComment\`?`, 'x'],
        ['unknown_override', '/variants/0/overrides/zzz', none, 'x'],
        ['unknown_override', '/variants/0/overrides/a~1b~0c', none, 'x'],
        ['unknown_override', '/variants/0/overrides', none, 'x'],
      ],
    );
    deepEqual(
      warned({ variants: [variant('x', { overrides: { privacyLevel: 'SELF_ONLY' } })] }).map(
        ([, , message]) => message,
      ),
      [`${none}: it is one of TikTok`],
    );
    const many = Object.fromEntries(Array.from({ length: 52 }, (_, n) => [`zzz${n}`, 1]));
    deepEqual(
      warned({ variants: [variant('x', { overrides: many })] })
        .slice(49)
        .map(([, , message]) => message),
      [none, 'the network does not get it', 'the network does not get it'],
    );
  });

  t('two times, and a zone in which nothing is read', () => {
    const both = { scheduledAt: '2027-03-01T08:00:00.000Z', scheduledLocal: '2027-03-01T08:00' };
    deepEqual(warned(schedule(both)), [idle('/schedule/scheduledAt', 'scheduledLocal beside it wins')]);
    deepEqual(warned(schedule({ scheduledAt: both.scheduledAt }), null, { zone: 'sent' }), [
      idle('/timezone', 'only scheduledLocal is read in this zone, and the schedule has none'),
    ]);
    deepEqual(warned(schedule({ scheduledLocal: both.scheduledLocal }), null, { zone: 'sent' }), []);
  });

  t('a wall-clock time that is read in another zone, or that the clocks skip', () => {
    const local = '2027-03-01T08:00';
    const body = { ...schedule({ scheduledLocal: local }), timezone: 'Europe/Berlin' };
    const tokyo = to('x', { scheduledLocal: local, timezone: 'Asia/Tokyo' });
    const message = `${local} is read in Asia/Tokyo, the zone of the account or of its client: 2027-02-28T23:00:00.000Z. In Europe/Berlin it would be 2027-03-01T07:00:00.000Z; if that is meant, send it as scheduledAt.`;
    const lost = [['timezone_not_used', '/timezone', message, 'x', 'of-x']];
    deepEqual(warned(body, [tokyo]), lost);
    deepEqual(warned(body, null), []);
    deepEqual(warned(body, [{ ...tokyo, scheduledLocal: null }]), []);
    deepEqual(warned(body, [{ ...tokyo, timezone: 'Europe/Paris' }]), [], 'it is the same instant');
    deepEqual(warned(body, [{ ...tokyo, timezone: 'Europe/Berlin' }]), []);
    deepEqual(warned({ ...body, timezone: 'UTC' }, [tokyo]), [], 'nobody named the zone');
    equal(warned({ ...body, timezone: 'UTC' }, [tokyo], { zone: 'sent' }).length, 1);
    const skipped = schedule({ scheduledLocal: '2027-03-28T02:30' });
    const berlin = { scheduledLocal: '2027-03-28T02:30', timezone: 'Europe/Berlin' };
    deepEqual(
      warned({ ...skipped, timezone: 'Europe/Berlin' }, [to('x', berlin), to('bluesky', berlin), to('threads')]).map(
        ([code, path, , platform, accountId]) => [code, path, platform, accountId],
      ),
      [
        ['local_time_skipped', '/schedule/scheduledLocal', 'x', 'of-x'],
        ['local_time_skipped', '/schedule/scheduledLocal', 'bluesky', 'of-bluesky'],
      ],
    );
  });

  t('members that no target reads', () => {
    const thread = { segments: [{ content: 'one', mediaIds: [] }] };
    const segments = 'every target gets the segments of the thread';
    deepEqual(warned({ thread, content: 'base', mediaIds: ['m'] }), [
      idle('/content', segments),
      idle('/mediaIds', segments),
    ]);
    deepEqual(warned({ thread, content: '', mediaIds: [] }), []);
    deepEqual(warned({ thread, content: 'base' }, [to('x'), to('bluesky')]), []);
    deepEqual(warned({ thread }, [to('bluesky')]), [idle('/thread', 'no network of the post takes threads')]);
    deepEqual(warned({ coverMediaId: 'm', coverFrameMs: 0 }), [
      idle('/coverMediaId', 'no network of the post takes a cover'),
      idle('/coverFrameMs', 'no network of the post takes a frame of the video as its cover'),
    ]);
    deepEqual(warned({ coverMediaId: 'm', coverFrameMs: 0 }, [to('x'), to('instagram'), to('tiktok')]), []);
    const why = 'the service publishes every target itself:';
    deepEqual(warned({ scheduleMode: 'native' }), [idle('/scheduleMode', `${why} managed`)]);
    deepEqual(warned({ scheduleMode: 'native' }, [to('x', { scheduleModeReason: 'due_now' })]), [
      idle('/scheduleMode', `${why} due_now`),
    ]);
    deepEqual(warned({ scheduleMode: 'native' }, [to('x'), to('facebook', { scheduleMode: 'native' })]), []);
  });

  t('variants of other networks, and what the segments of a thread stand for', () => {
    const thread = { segments: [{ content: 'one', mediaIds: [] }] };
    const full = { contentOverride: 'short', mediaIdsOverride: [] };
    deepEqual(warned({ variants: [variant('tiktok'), variant('x', full)] }), [
      idle('/variants/0', 'the post goes to no account on tiktok'),
    ]);
    const words = 'on x the segments of the thread stand for it';
    deepEqual(warned({ content: '', thread, variants: [variant('x', full)] }), [
      idle('/variants/0/contentOverride', words),
      idle('/variants/0/mediaIdsOverride', words),
    ]);
    deepEqual(warned({ content: '', thread, variants: [variant('x')] }), []);
  });

  t('alt texts of files that the post does not use', () => {
    const kept = { mediaAltTexts: { m: 'a' } };
    deepEqual(
      unusedAltTexts({ m: 'a', n: 'b' }, kept).map(({ path, message }) => [path, message]),
      [['/mediaAltTexts/n', 'the post does not use this asset']],
    );
    deepEqual(unusedAltTexts(null, kept), []);
    equal(unusedAltTexts({ m: 'a' }, { mediaAltTexts: null }).length, 1);
  });
});

suite('the rules of a client on one network', (t) => {
  t('see the segments, the title, the first comment and the link; what only warns is told apart', () => {
    const thread = {
      segments: [
        { content: 'good', mediaIds: [] },
        { content: 'bad', mediaIds: [] },
      ],
    };
    const rules = [readRules({ bannedWords: ['bad'], requiredHashtags: ['ad'], enforce: 'warn', linkPolicy: 'none' })];
    const ruled = (body: Partial<PostBody>, platform: Platform) => {
      const { errors, warnings } = ruledOn(postBody(body), platform, rules);
      return [errors, warnings].map((some) => some.map(({ path, code }) => [path, code]));
    };
    deepEqual(ruled({ thread }, 'x'), [
      [['/thread/segments/1/content', 'banned_word']],
      [['/thread/segments/0/content', 'hashtag_missing']],
    ]);
    const commented = { content: '#ad', variants: [variant('x', { overrides: { firstComment: 'bad' } })] };
    deepEqual(ruled(commented, 'x'), [[['/content', 'banned_word']], []]);
    const linked = { content: '#ad', variants: [variant('pinterest', { overrides: { link: 'https://evil.com' } })] };
    deepEqual(ruled(linked, 'pinterest')[0], [['/content', 'link_not_allowed']]);
    deepEqual(ruled({ content: '#ad' }, 'x'), [[], []]);
  });
});
