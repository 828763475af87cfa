import { deepEqual, equal } from 'node:assert/strict';
import {
  bodyIssues,
  concerns,
  draftMediaIssues,
  emptyIssues,
  gateIssues,
  mediaIssues,
  type PostAsset,
  type PostAssets,
  placeOf,
} from '#domain/post/compose.ts';
import type { Destination } from '#domain/post/scheduling.ts';
import { type Platform, platforms } from '#schemas/common.ts';
import type { PostBody, TargetSelection, Variant } from '#schemas/post.ts';
import { documentProbe, imageProbe, videoProbe } from '#test/services/domain/renditions/probes.ts';
import { postBody } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

const to = (accountId: string, platform: Platform): Destination => ({
  accountId,
  clientId: 'acme',
  platform,
  accountTimezone: null,
  clientTimezone: null,
  scopes: [],
});
const variant = (platform: Platform, over: Partial<Variant> = {}): Variant => ({
  platform,
  contentOverride: null,
  mediaIdsOverride: null,
  overrides: {},
  ...over,
});
const selection = (over: Partial<TargetSelection>): TargetSelection => ({
  mode: 'group',
  clientId: null,
  accountIds: null,
  platforms: null,
  ...over,
});
const group = selection({ clientId: 'acme' });
const paths = (issues: readonly { readonly path: string }[]) => issues.map(({ path }) => path);
const bodyPaths = (over: Partial<PostBody>) => paths(bodyIssues(postBody({ targetSelection: group, ...over }), 'acme'));

suite('contradictions within a body', (t) => {
  t('a consistent body has no issue', () => {
    deepEqual(bodyPaths({}), []);
    deepEqual(bodyPaths({ targetSelection: selection({ mode: 'accounts', accountIds: ['a'] }) }), []);
    deepEqual(bodyPaths({ variants: [variant('x'), variant('tiktok')] }), []);
  });

  t('a group needs a client, which must be the post’s client', () => {
    deepEqual(bodyPaths({ targetSelection: selection({}) }), ['/targets/clientId']);
    deepEqual(bodyPaths({ targetSelection: selection({ clientId: 'other' }) }), ['/targets/clientId']);
  });

  t('modes that select accounts need account ids', () => {
    for (const mode of ['accounts', 'selection'] as const) {
      for (const accountIds of [null, []]) {
        deepEqual(bodyPaths({ targetSelection: selection({ mode, accountIds }) }), ['/targets/accountIds']);
      }
    }
  });

  t('each further variant of the same network is an issue', () =>
    deepEqual(bodyPaths({ variants: [variant('x'), variant('x'), variant('tiktok'), variant('x')] }), [
      '/variants/1/platform',
      '/variants/3/platform',
    ]),
  );

  t('messages say what is missing and what contradicts', () => {
    const words = (over: Partial<PostBody>) =>
      bodyIssues(postBody({ targetSelection: group, ...over }), 'acme').map(({ message }) => message);
    deepEqual(words({ targetSelection: selection({}) }), ['is required when mode is group']);
    deepEqual(words({ targetSelection: selection({ clientId: 'other' }) }), ['must equal clientId of the post']);
    deepEqual(words({ targetSelection: selection({ mode: 'accounts' }) }), ['is required when mode is accounts']);
    deepEqual(words({ variants: [variant('x'), variant('x')] }), ['x has a variant already']);
  });

  t('all issues are reported at once, those of the schedule too', () => {
    const schedule = { ...postBody().schedule, type: 'range' as const };
    const over = {
      schedule,
      timezone: '+02:00',
      targetSelection: selection({}),
      variants: [variant('x'), variant('x')],
    };
    deepEqual(bodyPaths(over), [
      '/timezone',
      '/schedule/from',
      '/schedule/to',
      '/targets/clientId',
      '/variants/1/platform',
    ]);
  });
});

const asset = (over: Partial<PostAsset> = {}): PostAsset => ({
  clientId: null,
  kind: 'image',
  status: 'transcoded',
  publishable: true,
  probe: imageProbe(),
  altText: null,
  needs: new Map(),
  sha256: null,
  ...over,
});
const clip = (over: Partial<PostAsset> = {}, durationMs = 30_000) =>
  asset({ kind: 'video', probe: videoProbe({ durationMs }), ...over });
const known = (assets: Readonly<Record<string, PostAsset>>): PostAssets => new Map(Object.entries(assets));
const grouped = (body: PostBody, destinations: readonly Destination[], assets: PostAssets) => {
  const { invalid, notPublishable, notInClient } = mediaIssues(body, destinations, assets);
  return { invalid: paths(invalid), notPublishable: paths(notPublishable), notInClient: paths(notInClient) };
};
const fine = { invalid: [], notPublishable: [], notInClient: [] };

suite('media that a body names', (t) => {
  const everywhere = postBody({
    mediaIds: ['a', 'b'],
    variants: [variant('bluesky'), variant('x', { mediaIdsOverride: ['c', 'd'] })],
    thread: {
      segments: [
        { content: '', mediaIds: [] },
        { content: '', mediaIds: ['e', 'f'] },
      ],
    },
    coverMediaId: 'g',
  });
  const places = [
    '/mediaIds/0',
    '/mediaIds/1',
    '/variants/1/mediaIdsOverride/0',
    '/variants/1/mediaIdsOverride/1',
    '/thread/segments/1/mediaIds/0',
    '/thread/segments/1/mediaIds/1',
    '/coverMediaId',
  ];

  t('must be known, wherever the body names them, even without a target', () => {
    deepEqual(grouped(everywhere, [], known({})), { ...fine, invalid: places });
    deepEqual(mediaIssues(postBody({ mediaIds: ['a'] }), [], known({})).invalid, [
      { path: '/mediaIds/0', code: 'unknown_id', message: 'is not known' },
    ]);
    deepEqual(
      grouped(everywhere, [to('1', 'x')], known(Object.fromEntries([...'abcdefg'].map((id) => [id, asset()])))),
      fine,
    );
  });

  t('must be publishable', () => {
    const waiting = asset({ status: 'transcoding', publishable: false, probe: null });
    const assets = known({ ...Object.fromEntries([...'abcdefg'].map((id) => [id, asset()])), b: waiting, g: waiting });
    deepEqual(grouped(everywhere, [to('1', 'x')], assets), {
      ...fine,
      notPublishable: ['/mediaIds/1', '/coverMediaId'],
    });
    deepEqual(mediaIssues(postBody({ mediaIds: ['b'] }), [], assets).notPublishable, [
      { path: '/mediaIds/0', code: 'media_not_publishable', message: 'is transcoding', mediaId: 'b' },
    ]);
  });

  t('must belong to the client of each target that uses them, or to no client', () => {
    const other: Destination = { ...to('2', 'facebook'), clientId: 'zebra' };
    const assets = known({ ours: asset({ clientId: 'acme' }), everybodys: asset() });
    const body = postBody({ mediaIds: ['ours', 'everybodys'] });
    deepEqual(grouped(body, [to('1', 'x')], assets), fine);
    deepEqual(grouped(body, [to('1', 'x'), other], assets), { ...fine, notInClient: ['/mediaIds/0'] });
    const without = { ...body, variants: [variant('facebook', { mediaIdsOverride: ['everybodys'] })] };
    deepEqual(grouped(without, [to('1', 'x'), other], assets), fine, 'no target of the other client uses it');
    const alone = postBody({ variants: [variant('facebook', { mediaIdsOverride: ['ours'] })] });
    deepEqual(grouped(alone, [to('1', 'x'), other], assets), {
      ...fine,
      notInClient: ['/variants/0/mediaIdsOverride/0'],
    });
    const own = [{ ...to('1', 'x'), clientId: 'zebra' }, to('2', 'facebook')];
    deepEqual(grouped(alone, own, assets), fine, 'the file of a variant is used by its network alone');
    const threaded = postBody({
      variants: [variant('x', { mediaIdsOverride: ['ours'] })],
      thread: { segments: [{ content: 'one', mediaIds: [] }] },
    });
    deepEqual(grouped(threaded, own, assets), fine, 'the thread replaces it');
    deepEqual(mediaIssues(body, [other], assets).notInClient, [
      {
        path: '/mediaIds/0',
        code: 'media_not_in_client',
        message: 'belongs to another client than the post goes to',
        mediaId: 'ours',
      },
    ]);
    const cover = postBody({ coverMediaId: 'ours' });
    const text = { ...body, variants: [variant('facebook', { contentOverride: 'text' })] };
    deepEqual(grouped(text, [other], assets), { ...fine, notInClient: ['/mediaIds/0'] }, 'a variant of the text alone');
    deepEqual(grouped(cover, [other], assets), { ...fine, notInClient: ['/coverMediaId'] });
    deepEqual(grouped(cover, [{ ...other, platform: 'x' }], assets), fine, 'X takes no cover');
  });

  t('of a draft must be known, and be the client’s own or everybody’s; nothing is said of what a network takes', () => {
    const waiting = asset({ status: 'transcoding', publishable: false, probe: null });
    const all = known(Object.fromEntries([...'abcdefg'].map((id) => [id, waiting])));
    deepEqual(draftMediaIssues(everywhere, 'acme', all), { invalid: [], notInClient: [] });
    deepEqual(paths(draftMediaIssues(everywhere, 'acme', known({})).invalid), places);
    deepEqual(draftMediaIssues(postBody({ mediaIds: ['a'] }), 'acme', known({})).invalid, [
      { path: '/mediaIds/0', code: 'unknown_id', message: 'is not known' },
    ]);
    const mixed = known({ ours: asset({ clientId: 'acme' }), theirs: asset({ clientId: 'zebra' }), v: clip() });
    deepEqual(draftMediaIssues(postBody({ mediaIds: ['ours', 'theirs'] }), 'acme', mixed), {
      invalid: [],
      notInClient: [
        {
          path: '/mediaIds/1',
          code: 'media_not_in_client',
          message: 'belongs to another client than the post goes to',
          mediaId: 'theirs',
        },
      ],
    });
    const film = postBody({ mediaIds: ['v'], coverMediaId: 'v', coverFrameMs: 70_000 });
    deepEqual(draftMediaIssues(film, 'acme', mixed), { invalid: [], notInClient: [] });
  });

  t('of a thread are checked on X and Threads, those of the post on other networks', () => {
    const zebras = (platform: Platform): Destination => ({ ...to('1', platform), clientId: 'zebra' });
    const assets = known({ a: asset({ clientId: 'acme' }), b: asset() });
    const thread = (base: string, segment: string) =>
      postBody({ mediaIds: [base], thread: { segments: [{ content: '', mediaIds: [segment] }] } });
    deepEqual(grouped(thread('a', 'b'), [zebras('x')], assets), fine);
    deepEqual(grouped(thread('a', 'b'), [zebras('facebook')], assets).notInClient, ['/mediaIds/0']);
    deepEqual(grouped(thread('b', 'a'), [zebras('threads')], assets).notInClient, ['/thread/segments/0/mediaIds/0']);
    deepEqual(grouped(thread('b', 'a'), [zebras('facebook')], assets), fine);
  });

  t('the cover must be an image, and the cover frame must lie within the video', () => {
    const body = postBody({ mediaIds: ['v'], coverMediaId: 'v' });
    const assets = known({ v: clip(), long: clip({}, 60_000) });
    deepEqual(mediaIssues(body, [to('1', 'tiktok')], assets).invalid, [
      { path: '/coverMediaId', code: 'media_wrong_kind', message: 'must be an image', mediaId: 'v' },
    ]);
    const frame = (coverFrameMs: number, mediaIds = ['v']) =>
      grouped(postBody({ mediaIds, coverFrameMs }), [to('1', 'tiktok'), to('2', 'threads')], assets).invalid;
    deepEqual(frame(29_999), []);
    deepEqual(frame(30_000), ['/coverFrameMs']);
    deepEqual(mediaIssues(postBody({ mediaIds: ['v'], coverFrameMs: 30_000 }), [to('1', 'tiktok')], assets).invalid, [
      {
        path: '/coverFrameMs',
        code: 'too_large',
        message: 'must lie before the end of the video, which has 30000 ms',
      },
    ]);
    deepEqual(frame(30_000, ['long']), []);
    deepEqual(frame(70_000, ['v', 'long']), [], 'with several videos the frame is ignored');
    deepEqual(frame(70_000, []), []);
    const unread = postBody({ mediaIds: ['v'], coverFrameMs: 70_000 });
    deepEqual(grouped(unread, [to('1', 'tiktok')], known({ v: clip({ probe: null }) })).invalid, []);
    const elsewhere = postBody({ mediaIds: ['v'], coverFrameMs: 40_000 });
    deepEqual(grouped(elsewhere, [to('1', 'x')], assets), fine, 'only TikTok uses the frame');
  });
});

suite('the content of each target', (t) => {
  t('must not be empty; the issue points to where the caller wrote it', () => {
    const body = postBody({
      content: ' \n',
      variants: [
        variant('bluesky', { contentOverride: 'text' }),
        variant('x', { contentOverride: '' }),
        variant('tiktok'),
      ],
    });
    const all = [to('a', 'bluesky'), to('b', 'x'), to('c', 'tiktok'), to('d', 'facebook')];
    deepEqual(paths(emptyIssues(body, all).empty), ['/variants/1/contentOverride', '/content', '/content']);
    deepEqual(emptyIssues(body, all).empty[0], {
      path: '/variants/1/contentOverride',
      code: 'empty',
      message: 'a post needs text or media',
      accountId: 'b',
      platform: 'x',
    });
    deepEqual(emptyIssues(postBody({ mediaIds: ['m'], content: '' }), [to('a', 'x')]), { empty: [], threadless: [] });
  });

  t('a text of which a reader sees nothing is empty, on every network', () => {
    const nothing = [
      ' \u00a0\u3000',
      '\u200b\u200d\ufeff',
      '\u2800\u3164',
      '\u202e\u2066\u2069',
      '\ufe0f',
      '\u00ad\u034f',
    ];
    const all = platforms.map((platform) => to(platform, platform));
    for (const content of nothing) {
      equal(emptyIssues(postBody({ content }), all).empty.length, all.length, JSON.stringify(content));
      const segments = [{ content, mediaIds: [] }];
      equal(emptyIssues(postBody({ thread: { segments } }), [to('a', 'x')]).empty.length, 1);
      deepEqual(emptyIssues(postBody({ content, mediaIds: ['m'] }), all).empty, []);
    }
    // Markup is read before it is judged.
    const marked = (content: string, parseMode?: string) =>
      emptyIssues(postBody({ content, variants: [variant('telegram', { overrides: { parseMode } })] }), [
        to('a', 'telegram'),
      ]).empty.length;
    deepEqual([marked('<b> </b>&#8203;', 'HTML'), marked('<b>a</b>', 'HTML'), marked('<b> </b>')], [1, 0, 0]);
    deepEqual([marked('*\u200b* __ __', 'MarkdownV2'), marked('[\u200b](https://a.com)', 'Markdown')], [1, 1]);
    for (const content of ['.', '👍🏽', '\u0301', '\u0600', '한', '🏴\u{e0067}\u{e007f}']) {
      deepEqual(emptyIssues(postBody({ content }), all).empty, [], content);
    }
  });

  t('needs text or media in each segment of a thread, and content of the post on networks without threads', () => {
    const segments = [
      { content: 'one', mediaIds: [] },
      { content: ' ', mediaIds: ['m'] },
      { content: ' ', mediaIds: [] },
    ];
    const body = postBody({
      content: '',
      variants: [variant('bluesky', { contentOverride: 'text' }), variant('facebook')],
      thread: { segments },
    });
    const all = [to('a', 'x'), to('b', 'bluesky'), to('c', 'facebook'), to('d', 'linkedin'), to('e', 'threads')];
    const { empty, threadless } = emptyIssues(body, all);
    deepEqual(empty, [{ path: '/thread/segments/2', code: 'empty', message: 'a segment needs text or media' }]);
    deepEqual(paths(threadless), ['/content', '/content']);
    deepEqual(
      threadless.map(({ code, accountId, platform }) => [code, accountId, platform]),
      [
        ['thread_not_supported', 'c', 'facebook'],
        ['thread_not_supported', 'd', 'linkedin'],
      ],
    );
  });

  t('is checked segment by segment; overrides of the head are checked once', () => {
    const long = 'x'.repeat(281);
    const segments = [
      { content: 'fine', mediaIds: [] },
      { content: long, mediaIds: ['a', 'a', 'a', 'a', 'a'] },
    ];
    const thread = postBody({ content: long, thread: { segments } });
    const photo = known({ a: asset() });
    const all = [to('a', 'x'), to('b', 'x'), to('c', 'threads')];
    deepEqual(paths(gateIssues(thread, all, photo)), [
      '/thread/segments/1/content',
      '/thread/segments/1/content',
      '/thread/segments/1/mediaIds',
      '/thread/segments/1/mediaIds',
    ]);
    const many = postBody({
      thread: {
        segments: [
          { content: 'fine', mediaIds: [] },
          { content: '', mediaIds: ['a', 'a', 'a', 'a', 'a'] },
        ],
      },
    });
    deepEqual(paths(gateIssues(many, all, photo)), ['/thread/segments/1/mediaIds', '/thread/segments/1/mediaIds']);
    const wrong = postBody({
      thread: {
        segments: [
          { content: 'a', mediaIds: [] },
          { content: 'b', mediaIds: [] },
        ],
      },
      variants: [variant('x', { overrides: { replySettings: 'nobody' } })],
    });
    deepEqual(paths(gateIssues(wrong, all, photo)), Array(2).fill('/variants/0/overrides/replySettings'));
  });

  t('is held to what each account allows', () => {
    const body = postBody({
      mediaIds: ['v'],
      variants: [variant('tiktok', { overrides: { privacyLevel: 'PUBLIC_TO_EVERYONE' } })],
    });
    const hidden = { ...to('b', 'tiktok'), scopes: ['privacy_level.SELF_ONLY'] };
    const issues = gateIssues(body, [to('a', 'tiktok'), hidden, to('c', 'tiktok')], known({ v: clip() }));
    deepEqual(
      issues.map(({ path, code, accountId }) => [path, code, accountId]),
      [['/variants/0/overrides/privacyLevel', 'override_not_granted', 'b']],
    );
  });

  t('is checked by every rule of each network, the first fault of each target first', () => {
    const overrides = { replySettings: 'nobody' };
    const variants = [variant('x', { contentOverride: 'z'.repeat(281), overrides })];
    const body = postBody({ content: 'y'.repeat(301), variants });
    const issues = gateIssues(body, [to('a', 'x'), to('b', 'x'), to('c', 'bluesky'), to('d', 'facebook')], known({}));
    const [text, reply] = ['/variants/0/contentOverride', '/variants/0/overrides/replySettings'];
    deepEqual(
      issues.map(({ path, code, accountId, platform }) => [path, code, accountId, platform]),
      [
        [text, 'text_too_long', 'a', 'x'],
        [text, 'text_too_long', 'b', 'x'],
        ['/content', 'text_too_long', 'c', 'bluesky'],
        [reply, 'override_enum', 'a', 'x'],
        [reply, 'override_enum', 'b', 'x'],
      ],
    );
  });

  t('an issue with an override points into the overrides of the variant', () => {
    const body = postBody({
      variants: [variant('youtube'), variant('tiktok', { overrides: { privacyLevel: 'EVERYBODY' } })],
    });
    deepEqual(paths(gateIssues({ ...body, mediaIds: ['v'] }, [to('a', 'tiktok')], known({ v: clip() }))), [
      '/variants/1/overrides/privacyLevel',
    ]);
  });

  t('media are checked by each network: those of the variant, else of the post, and the cover', () => {
    const assets = known({
      long: clip({}, 200_000),
      short: clip(),
      doc: asset({ kind: 'document', probe: documentProbe() }),
      dot: asset({ probe: imageProbe({ width: 2, height: 2 }) }),
    });
    const all = [to('a', 'x'), to('b', 'bluesky'), to('c', 'threads')];
    deepEqual(gateIssues(postBody({ mediaIds: ['long'] }), all, assets), [
      {
        path: '/mediaIds',
        code: 'media_too_long',
        message: 'X takes videos of at most 140 s; this one has 200 s',
        mediaId: 'long',
        accountId: 'a',
        platform: 'x',
      },
    ]);
    const body = postBody({
      mediaIds: ['long'],
      variants: [variant('bluesky', { mediaIdsOverride: ['doc'] }), variant('x', { mediaIdsOverride: ['short'] })],
    });
    deepEqual(paths(gateIssues(body, all, assets)), ['/variants/0/mediaIdsOverride']);
    const ownText = postBody({ mediaIds: ['long'], variants: [variant('x', { contentOverride: 'short' })] });
    deepEqual(paths(gateIssues(ownText, all, assets)), ['/mediaIds']);
    const covered = postBody({ mediaIds: ['short'], coverMediaId: 'dot', variants: [variant('youtube')] });
    deepEqual(paths(gateIssues(covered, [to('a', 'youtube'), to('b', 'x')], assets)), ['/coverMediaId']);
    deepEqual(paths(gateIssues(postBody(), [to('a', 'instagram'), to('b', 'x')], assets)), ['/mediaIds']);
  });
});

suite('the targets that a fault of a body concerns', (t) => {
  const all = [to('a', 'x'), to('b', 'bluesky'), to('c', 'instagram'), to('d', 'tiktok')];
  const body = postBody({
    mediaIds: ['m'],
    variants: [variant('bluesky', { mediaIdsOverride: ['n'] }), ...Array.from({ length: 9 }, () => variant('youtube'))],
    thread: { segments: [{ content: 'one', mediaIds: ['o'] }] },
    coverMediaId: 'p',
  });
  const concerned = (path: string, accountId?: string) =>
    all
      .filter((one) => concerns(body, one, { path, code: 'required', message: 'm', ...(accountId && { accountId }) }))
      .map(({ platform }) => platform);

  t('are those that get what it names', () => {
    deepEqual(concerned('/mediaIds/0'), ['instagram', 'tiktok']);
    deepEqual(concerned('/variants/0/mediaIdsOverride/0'), ['bluesky']);
    deepEqual(concerned('/thread/segments/0/mediaIds/0'), ['x']);
    deepEqual(concerned('/thread/segments/0/content'), ['x']);
    deepEqual(concerned('/coverMediaId'), ['instagram']);
    deepEqual(concerned('/coverFrameMs'), ['instagram', 'tiktok']);
    deepEqual(concerned('/variants/0/overrides/langs'), ['bluesky']);
    deepEqual(concerned('/variants/10/overrides/langs'), []);
    deepEqual(concerned('/other/variants/0/overrides/langs'), []);
    deepEqual(concerned('/variants/x/overrides/langs'), []);
    deepEqual(concerned('/content'), []);
    deepEqual(concerned('/content', 'b'), ['bluesky']);
  });

  t('get a file from the first place that goes to them', () => {
    deepEqual(
      ['m', 'n', 'o'].map((id) => all.map((one) => placeOf(body, one, id))),
      [
        ['/mediaIds', '/mediaIds', '/mediaIds/0', '/mediaIds/0'],
        ['/mediaIds', '/variants/0/mediaIdsOverride/0', '/mediaIds', '/mediaIds'],
        ['/thread/segments/0/mediaIds/0', '/mediaIds', '/mediaIds', '/mediaIds'],
      ],
    );
  });
});
