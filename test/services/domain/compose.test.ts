import { deepEqual } from 'node:assert/strict';
import { bodyIssues, emptyIssues, gateIssues, unsupportedIssues } from '#domain/compose.ts';
import type { Destination } from '#domain/scheduling.ts';
import type { Platform } from '#schemas/common.ts';
import type { PostBody, TargetSelection, Variant } from '#schemas/post.ts';
import { postBody } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

const to = (accountId: string, platform: Platform): Destination => ({
  accountId,
  clientId: 'acme',
  platform,
  accountTimezone: null,
  clientTimezone: null,
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

suite('a body against itself', (t) => {
  t('passes where nothing contradicts', () => {
    deepEqual(bodyPaths({}), []);
    deepEqual(bodyPaths({ targetSelection: selection({ mode: 'accounts', accountIds: ['a'] }) }), []);
    deepEqual(bodyPaths({ variants: [variant('x'), variant('tiktok')] }), []);
  });

  t('names the client of a group, which is the post’s own', () => {
    deepEqual(bodyPaths({ targetSelection: selection({}) }), ['/targets/clientId']);
    deepEqual(bodyPaths({ targetSelection: selection({ clientId: 'other' }) }), ['/targets/clientId']);
  });

  t('names the accounts where they are what is selected', () => {
    for (const mode of ['accounts', 'selection'] as const) {
      for (const accountIds of [null, []]) {
        deepEqual(bodyPaths({ targetSelection: selection({ mode, accountIds }) }), ['/targets/accountIds']);
      }
    }
  });

  t('has one variant a network: each further one is named', () =>
    deepEqual(bodyPaths({ variants: [variant('x'), variant('x'), variant('tiktok'), variant('x')] }), [
      '/variants/1/platform',
      '/variants/3/platform',
    ]),
  );

  t('says everything that is wrong at once, the schedule too', () => {
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

suite('members without behaviour so far', (t) => {
  t('are refused by name', () => {
    const body = postBody({
      mediaIds: ['m'],
      thread: { segments: [] },
      coverMediaId: 'm',
      coverFrameMs: 0,
      mediaAltTexts: { m: 'a cat' },
      campaignId: 'c',
      aiDisclosure: true,
      variants: [variant('x'), variant('instagram', { mediaIdsOverride: ['m'], overrides: { firstComment: 'hi' } })],
    });
    deepEqual(paths(unsupportedIssues(body)).sort(), [
      '/aiDisclosure',
      '/campaignId',
      '/coverFrameMs',
      '/coverMediaId',
      '/mediaAltTexts',
      '/mediaIds',
      '/thread',
      '/variants/1/mediaIdsOverride',
      '/variants/1/overrides/firstComment',
    ]);
  });

  t('are not there when they are empty', () =>
    deepEqual(
      unsupportedIssues(postBody({ mediaAltTexts: {}, variants: [variant('x', { mediaIdsOverride: [] })] })),
      [],
    ),
  );
});

suite('what goes out', (t) => {
  t('is not empty on any target; the pointer shows where the caller wrote it', () => {
    const body = postBody({
      content: ' \n',
      variants: [
        variant('bluesky', { contentOverride: 'text' }),
        variant('x', { contentOverride: '' }),
        variant('tiktok'),
      ],
    });
    const all = [to('a', 'bluesky'), to('b', 'x'), to('c', 'tiktok'), to('d', 'facebook')];
    deepEqual(paths(emptyIssues(body, all)), ['/variants/1/contentOverride', '/content', '/content']);
    deepEqual(emptyIssues(postBody({ mediaIds: ['m'], content: '' }), [to('a', 'x')]), []);
  });

  t('is held against each network’s rules, one entry a target', () => {
    const body = postBody({ content: 'y'.repeat(301), variants: [variant('x', { contentOverride: 'z'.repeat(281) })] });
    const issues = gateIssues(body, [to('a', 'x'), to('b', 'x'), to('c', 'bluesky'), to('d', 'facebook')]);
    deepEqual(paths(issues), ['/variants/0/contentOverride', '/variants/0/contentOverride', '/content']);
    deepEqual(
      issues.map(({ message }) => message.split(':')[0]),
      ['account a', 'account b', 'account c'],
    );
  });

  t('points into the variant’s overrides for what is wrong there', () => {
    const body = postBody({
      variants: [variant('youtube'), variant('tiktok', { overrides: { privacyLevel: 'EVERYBODY' } })],
    });
    deepEqual(paths(gateIssues(body, [to('a', 'tiktok')])), ['/variants/1/overrides/privacyLevel']);
  });
});
