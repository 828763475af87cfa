import { deepEqual, equal, ok } from 'node:assert/strict';
import {
  type Asset,
  bytesOf,
  isDeleted,
  type MediaCommand,
  media,
  needKey,
  nextStep,
  type PlannedNeed,
} from '#domain/media.ts';
import type { MediaEvent, MediaNeed, RenditionSpec } from '#schemas/media.ts';
import { fittingProbe } from '#test/support/assets.ts';
import { deciding } from '#test/support/deciding.ts';
import { suite } from '#test/support/suite.ts';

const { given, state } = deciding(media);

const sha256 = 'a'.repeat(64);
const offer = {
  fileName: 'clip.mov',
  clientId: null,
  folder: null,
  contentType: 'video/quicktime',
  bytes: 1_000,
  key: 'w/a/upload',
  expiresAt: '2026-01-01T01:00:00.000Z',
};
const details = {
  name: 'Clip',
  clientId: null,
  folder: 'Winter',
  altText: null,
  platforms: ['x' as const, 'tiktok' as const],
};
const file = { key: 'w/a/original', contentType: 'video/quicktime', bytes: 1_000, sha256 };
const probe = fittingProbe('video');
const failure = { code: 'media_too_long', message: 'X takes videos of at most 140 s; this one has 200 s.' };

const offered: MediaEvent = { type: 'MediaUploadOffered', data: offer };
const registered: MediaEvent = { type: 'MediaRegistered', data: details };
const stored: MediaEvent = { type: 'MediaStored', data: { ...file, kind: 'video' } };
const probed: MediaEvent = { type: 'MediaProbed', data: { probe } };
const transcoded: MediaEvent = { type: 'MediaTranscoded', data: { poster: null } };
const failed: MediaEvent = { type: 'MediaFailed', data: { failure } };
const quarantined: MediaEvent = { type: 'MediaQuarantined', data: { failure } };

const spec: RenditionSpec = {
  kind: 'video',
  mode: 'encode',
  width: 1_080,
  height: 1_920,
  fit: 'scale',
  fps: null,
  videoKbps: 5_000,
  audio: null,
  maxBytes: null,
};
const [one, two] = ['1'.repeat(32), '2'.repeat(32)];
const x: MediaNeed = { platform: 'x', use: 'feed' };
const tiktok: MediaNeed = { platform: 'tiktok', use: 'feed' };
const reel: MediaNeed = { platform: 'instagram', use: 'reel' };
const rendition = (need: MediaNeed, id: string): PlannedNeed => ({ ...need, outcome: 'rendition', id, spec });
const made = {
  key: `w/a/${one}.mp4`,
  contentType: 'video/mp4',
  bytes: 700,
  sha256,
  width: 1_080,
  height: 1_920,
  durationMs: 9_000,
};
const ready = (need: MediaNeed, id: string): MediaEvent => ({
  type: 'MediaRenditionReady',
  data: { ...need, rendition: id, ...made },
});
const lost = (need: MediaNeed, id: string | null): MediaEvent => ({
  type: 'MediaRenditionFailed',
  data: { ...need, rendition: id, failure },
});
const plannedAs = (
  needs: readonly (MediaNeed & { readonly rendition: string | null })[],
  initial = true,
): MediaEvent => ({
  type: 'MediaRenditionsPlanned',
  data: {
    initial,
    needs: [...needs],
    renditions: [...new Set(needs.flatMap(({ rendition: id }) => (id === null ? [] : [id])))].map((id) => ({
      id,
      spec,
    })),
  },
});
const asset = (events: readonly MediaEvent[]): Asset => {
  const found = state(events);
  if (found.status === 'none' || found.status === 'offered' || found.status === 'deleted') throw new Error('no asset');
  return found;
};
const statusesOf = (events: readonly MediaEvent[]) =>
  Object.fromEntries([...asset(events).needs.values()].map((need) => [needKey(need), need.status]));

const begun = [offered, registered];
const looked = [...begun, stored, probed];
/** x and tiktok share a rendition that is being made. */
const shared = [
  ...looked,
  plannedAs([
    { ...x, rendition: one },
    { ...tiktok, rendition: one },
  ]),
];

suite('media: how it begins', (t) => {
  t('a place is offered once', () => {
    given([])
      .when({ type: 'Offer', ...offer })
      .then([offered]);
    given(begun)
      .when({ type: 'Offer', ...offer })
      .then([]);
    equal(nextStep(state([offered])), null);
  });

  t('an upload is registered once, with the details of the first call', () => {
    given([])
      .when({ type: 'Register', ...details })
      .refused('not_found');
    given([offered])
      .when({ type: 'Register', ...details })
      .then([registered]);
    given(begun)
      .when({ type: 'Register', ...details, name: 'Another' })
      .then([]);
    const { status, details: reported, origin, platforms } = asset(begun);
    deepEqual([status, reported.name, origin.kind, platforms], ['transcoding', 'Clip', 'upload', ['x', 'tiktok']]);
  });

  t('an import is an asset at once', () => {
    const url = 'https://cdn.example/clip.mov';
    const requested: MediaEvent = { type: 'MediaImportRequested', data: { url, ...details } };
    given([])
      .when({ type: 'RequestImport', url, ...details })
      .then([requested]);
    given(begun)
      .when({ type: 'RequestImport', url, ...details })
      .then([]);
    deepEqual(asset([requested]).origin, { kind: 'import', url, source: null });
    equal(nextStep(state([requested])), 'store');
    // The query may be a credential, and nobody needs it once the download is over.
    const whole: MediaEvent = { type: 'MediaImportRequested', data: { url: `${url}?signature=1#a\nb`, ...details } };
    const origin = { kind: 'import', url: `${url}?signature=1#a\nb`, source: null };
    deepEqual(asset([whole]).origin, origin);
    const failure = { code: 'import_refused', message: 'no' };
    for (const end of [
      { type: 'MediaStored', data: { ...file, kind: 'video' } },
      { type: 'MediaFailed', data: { failure } },
      { type: 'MediaQuarantined', data: { failure } },
    ] satisfies MediaEvent[]) {
      deepEqual(asset([whole, end]).origin, { ...origin, url });
    }
  });
});

suite('media: step by step', (t) => {
  t('each step is done once, in its turn; after a crash the same step is the next one again', () => {
    const steps: readonly (readonly [
      step: ReturnType<typeof nextStep>,
      events: readonly MediaEvent[],
      command: MediaCommand,
      then: readonly MediaEvent[],
    ])[] = [
      ['store', begun, { type: 'RecordStored', ...file, kind: 'video' }, [stored]],
      ['probe', [...begun, stored], { type: 'RecordProbed', probe }, [probed]],
      [
        'plan',
        looked,
        { type: 'Plan', initial: true, needs: [rendition(x, one), rendition(tiktok, one)] },
        shared.slice(looked.length),
      ],
      ['render', shared, { type: 'RecordRendition', rendition: one, file: made }, [ready(x, one), ready(tiktok, one)]],
      [
        'finish',
        [...shared, ready(x, one), ready(tiktok, one)],
        { type: 'RecordTranscoded', poster: null },
        [transcoded],
      ],
    ];
    for (const [step, events, command, then] of steps) {
      equal(nextStep(state(events)), step);
      given(events).when(command).then(then);
    }
    equal(nextStep(state([...shared, ready(x, one), ready(tiktok, one), transcoded])), null);
  });

  t('a file that cannot be used is refused once, with the reason, and no step is left', () => {
    for (const [command, then, status] of [
      [{ type: 'RecordFailed', failure }, failed, 'failed'],
      [{ type: 'RecordQuarantined', failure }, quarantined, 'quarantined'],
    ] as const) {
      for (const events of [begun, looked, shared]) {
        given(events).when(command).then([then]);
        const after = asset([...events, then]);
        deepEqual([after.status, 'failure' in after && after.failure], [status, failure]);
        equal(nextStep(after), null);
      }
      given([...shared, ready(x, one), ready(tiktok, one), transcoded])
        .when(command)
        .then([]);
    }
  });

  t('a result out of turn gives no event', () => {
    given(begun).when({ type: 'RecordProbed', probe }).then([]);
    given([...begun, stored])
      .when({ type: 'Plan', initial: true, needs: [] })
      .then([]);
    given(shared).when({ type: 'RecordTranscoded', poster: null }).then([]);
    given([offered])
      .when({ type: 'RecordStored', ...file, kind: 'video' })
      .then([]);
    given([]).when({ type: 'RecordFailed', failure }).then([]);
  });

  t('the result of a second worker gives no event, however it differs', () => {
    given([...begun, stored])
      .when({ type: 'RecordStored', ...file, bytes: 2, kind: 'image' })
      .then([]);
    given(looked)
      .when({ type: 'RecordProbed', probe: fittingProbe('image') })
      .then([]);
    // What was planned is what is made.
    given(shared)
      .when({ type: 'Plan', initial: true, needs: [rendition(x, two), { ...tiktok, outcome: 'fits' }] })
      .then([]);
    given([...shared, ready(x, one), ready(tiktok, one)])
      .when({ type: 'RecordRendition', rendition: one, file: { ...made, bytes: 1 } })
      .then([]);
  });
});

suite('media: needs', (t) => {
  t('fits, made or failed: each is recorded; a failed rendition does not affect others', () => {
    given(looked)
      .when({
        type: 'Plan',
        initial: true,
        needs: [{ ...x, outcome: 'failed', failure }, { ...tiktok, outcome: 'fits' }, rendition(reel, two)],
      })
      .then([
        plannedAs([
          { ...tiktok, rendition: null },
          { ...reel, rendition: two },
        ]),
        lost(x, null),
      ]);
    const events = [...looked, plannedAs([{ ...tiktok, rendition: null }]), lost(x, null)];
    deepEqual(statusesOf(events), { 'tiktok/feed': 'fits', 'x/feed': 'failed' });
    equal(nextStep(state(events)), 'finish', 'it is ready for those that take it');
  });

  t('after a crash between a plan and its failures, the plan is made again for the open needs', () => {
    // An append is whole, so only a plan of another round can leave a need open.
    const requested: MediaEvent = {
      type: 'MediaRenditionsRequested',
      data: { needs: [x], for: { kind: 'post', id: '11111111-1111-4111-8111-111111111111' } },
    };
    const events = [...looked, requested];
    given(events)
      .when({ type: 'Plan', initial: true, needs: [{ ...x, outcome: 'failed', failure }] })
      .then([plannedAs([]), lost(x, null)]);
    deepEqual(statusesOf(events), { 'x/feed': 'wanted' });
  });

  t('a plan without renditions is a plan too', () => {
    given(looked)
      .when({ type: 'Plan', initial: true, needs: [] })
      .then([plannedAs([])]);
    equal(nextStep(state([...looked, plannedAs([])])), 'finish');
  });

  t('a rendition that fails fails every need that shares it, once; the asset continues', () => {
    given(shared)
      .when({ type: 'RecordRenditionFailed', rendition: one, failure })
      .then([lost(x, one), lost(tiktok, one)]);
    given([...shared, lost(x, one), lost(tiktok, one)])
      .when({ type: 'RecordRendition', rendition: one, file: made })
      .then([]);
    equal(nextStep(state([...shared, lost(x, one), lost(tiktok, one)])), 'finish');
  });

  t('an unplanned rendition gives no event', () => {
    given(shared).when({ type: 'RecordRendition', rendition: two, file: made }).then([]);
  });

  t('on demand: requested once, planned, made, while the asset stays publishable', () => {
    const done = [...shared, ready(x, one), ready(tiktok, one), transcoded];
    const why = { kind: 'target' as const, id: '22222222-2222-4222-8222-222222222222' };
    const asked: MediaEvent = { type: 'MediaRenditionsRequested', data: { needs: [reel], for: why } };
    given(done)
      .when({ type: 'RequestRenditions', needs: [x, reel], for: why })
      .then([asked]);
    given(done)
      .when({ type: 'RequestRenditions', needs: [x, tiktok], for: why })
      .then([]);
    equal(nextStep(state([...done, asked])), 'plan');
    given([...done, asked])
      .when({ type: 'Plan', initial: false, needs: [rendition(reel, two)] })
      .then([plannedAs([{ ...reel, rendition: two }], false)]);
    const filling = [...done, asked, plannedAs([{ ...reel, rendition: two }], false)];
    equal(nextStep(state(filling)), 'render');
    equal(asset(filling).status, 'transcoded');
    given(filling)
      .when({ type: 'RecordRendition', rendition: two, file: made })
      .then([ready(reel, two)]);
    equal(nextStep(state([...filling, ready(reel, two)])), null);
    given(filling).when({ type: 'RecordFailed', failure }).then([]);
  });

  t('a later plan and a later request leave what was planned before as it is', () => {
    const asked: MediaEvent = {
      type: 'MediaRenditionsRequested',
      data: { needs: [x, reel], for: { kind: 'post', id: '44444444-4444-4444-8444-444444444444' } },
    };
    deepEqual(statusesOf([...shared, asked]), {
      'x/feed': 'planned',
      'tiktok/feed': 'planned',
      'instagram/reel': 'wanted',
    });
    const both = asset([...shared, asked, plannedAs([{ ...reel, rendition: two }], false)]);
    deepEqual([...both.specs.keys()], [one, two]);
    const early = [
      ...looked,
      asked,
      plannedAs(
        [
          { ...x, rendition: null },
          { ...reel, rendition: null },
        ],
        false,
      ),
    ];
    equal(nextStep(state(early)), 'plan', 'the needs of its own networks are not planned yet');
  });

  t('a need that is requested before the probe is part of the first plan', () => {
    const why = { kind: 'post' as const, id: '33333333-3333-4333-8333-333333333333' };
    const events: readonly MediaEvent[] = [
      ...begun,
      { type: 'MediaRenditionsRequested', data: { needs: [reel], for: why } },
      stored,
      probed,
    ];
    equal(nextStep(state(events)), 'plan');
    given(events)
      .when({ type: 'Plan', initial: true, needs: [rendition(x, one), rendition(reel, one)] })
      .then([
        plannedAs([
          { ...x, rendition: one },
          { ...reel, rendition: one },
        ]),
      ]);
  });
});

suite('media: every outcome once', (t) => {
  const ends: readonly MediaCommand[] = [
    { type: 'RecordTranscoded', poster: null },
    { type: 'RecordFailed', failure },
    { type: 'RecordQuarantined', failure },
  ];
  const whole = [...shared, ready(x, one), ready(tiktok, one)];

  t('after one final outcome no other is recorded', () => {
    for (const end of [transcoded, failed, quarantined]) {
      for (const command of ends) {
        given([...whole, end])
          .when(command)
          .then([]);
      }
    }
  });

  t('a refused asset gets no more events', () => {
    const more: readonly MediaCommand[] = [
      { type: 'RecordStored', ...file, kind: 'video' },
      { type: 'RecordProbed', probe },
      { type: 'Plan', initial: true, needs: [rendition(x, one)] },
      { type: 'RequestRenditions', needs: [reel], for: { kind: 'post', id: offer.key } },
      { type: 'RecordRendition', rendition: one, file: made },
      { type: 'RecordRenditionFailed', rendition: one, failure },
    ];
    const histories: readonly (readonly MediaEvent[])[] = [begun, [...begun, stored], shared];
    for (const end of [failed, quarantined]) {
      for (const events of histories) {
        for (const command of more)
          given([...events, end])
            .when(command)
            .then([]);
        equal(nextStep(state([...events, end])), null);
      }
    }
    deepEqual(asset([...begun, failed]).failure, failure);
  });

  t('any results of workers in any order: one final outcome, and one outcome for each need', () => {
    const commands: readonly MediaCommand[] = [
      { type: 'Register', ...details },
      { type: 'RecordStored', ...file, kind: 'video' },
      { type: 'RecordProbed', probe },
      { type: 'Plan', initial: true, needs: [rendition(x, one), rendition(tiktok, two)] },
      { type: 'RecordRendition', rendition: one, file: made },
      { type: 'RecordRenditionFailed', rendition: two, failure },
      ...ends,
    ];
    // Each pair of commands swapped, the whole said three times: a worker that died and two that took over.
    for (let a = 0; a < commands.length; a += 1) {
      for (let b = a; b < commands.length; b += 1) {
        const order = [...commands];
        [order[a], order[b]] = [order[b] as MediaCommand, order[a] as MediaCommand];
        const events: MediaEvent[] = [offered];
        for (const command of [...order, ...order, ...order]) {
          const decided: readonly MediaEvent[] = media.decide(command, state(events));
          events.push(...decided);
        }
        const types = events.map(({ type }) => type);
        const said = (...names: readonly string[]) => types.filter((type) => names.includes(type)).length;
        equal(said('MediaTranscoded', 'MediaFailed', 'MediaQuarantined'), 1, types.join(' '));
        for (const platform of ['x', 'tiktok']) {
          const outcomes = events.filter(
            (event) =>
              (event.type === 'MediaRenditionReady' || event.type === 'MediaRenditionFailed') &&
              event.data.platform === platform,
          );
          ok(outcomes.length <= 1, types.join(' '));
        }
      }
    }
  });
});

suite('media: how it is deleted', (t) => {
  const deleted: MediaEvent = { type: 'MediaDeleted', data: {} };
  const removed: MediaEvent = { type: 'MediaFilesRemoved', data: {} };
  const usable = [...shared, ready(x, one), ready(tiktok, one), transcoded];

  t('is deleted once, in any state; its files are removed after it, once', () => {
    given([]).when({ type: 'Delete' }).refused('not_found');
    for (const before of [[offered], begun, shared, usable, [...begun, failed], [...begun, quarantined]]) {
      given(before).when({ type: 'Delete' }).then([deleted]);
      given([...before, deleted])
        .when({ type: 'Delete' })
        .then([]);
      given(before).when({ type: 'RemoveFiles' }).then([]);
    }
    given([...usable, deleted])
      .when({ type: 'RemoveFiles' })
      .then([removed]);
    given([...usable, deleted, removed])
      .when({ type: 'RemoveFiles' })
      .then([]);
    given([...usable, deleted, removed])
      .when({ type: 'Delete' })
      .then([]);
    given([offered, deleted])
      .when({ type: 'Register', ...details })
      .refused('not_found');
    given([...usable, deleted, removed])
      .when({ type: 'RequestRenditions', needs: [reel], for: { kind: 'post', id: 'p' } })
      .then([]);
  });

  t(
    'an asset that no post could use is removed at once; renditions for a post that took it are still made first',
    () => {
      for (const before of [begun, looked, shared, [...begun, failed], [...begun, quarantined]])
        equal(nextStep(state([...before, deleted])), 'remove');
      equal(nextStep(state([...usable, deleted])), 'remove');
      const wanted: MediaEvent = {
        type: 'MediaRenditionsRequested',
        data: { needs: [reel], for: { kind: 'post', id: 'p' } },
      };
      given([...usable, deleted])
        .when({ type: 'RequestRenditions', ...wanted.data })
        .then([wanted]);
      equal(nextStep(state([...usable, deleted, wanted])), 'plan');
      equal(nextStep(state([...usable, deleted, removed])), null);
    },
  );

  t('files count from the moment they are stored, each once, with the poster', () => {
    equal(bytesOf(state(begun)), 0);
    equal(bytesOf(state(shared)), 1_000, 'a rendition that is not made yet has no bytes');
    const frame = { key: 'w/a/poster.jpg', contentType: 'image/jpeg', bytes: 30, sha256, width: 9, height: 16 };
    equal(bytesOf(state([...usable.slice(0, -1), { type: 'MediaTranscoded', data: { poster: frame } }])), 1_730);
  });

  t('an import that was never stored leaves nothing; a stored one leaves its file', () => {
    const url = 'https://cdn.example/clip.mov';
    const requested: MediaEvent = { type: 'MediaImportRequested', data: { url, ...details } };
    deepEqual(state([requested, deleted, removed]), { status: 'deleted', keys: [], kind: null });
    deepEqual(state([requested, stored, deleted, removed]), { status: 'deleted', keys: [file.key], kind: 'video' });
  });

  t('events before the registration or after the removal are ignored', () => {
    const before: readonly MediaEvent[] = [stored, probed, plannedAs([]), transcoded, failed, quarantined, removed];
    const gone = [...usable, deleted, removed];
    for (const event of [...before, registered, deleted]) {
      deepEqual(state([event]), media.initial, event.type);
      deepEqual(state([...gone, event]), state(gone), event.type);
    }
    for (const event of before) deepEqual(state([offered, event]), state([offered]), event.type);
    deepEqual(state([...usable, registered]), state(usable));
    for (const events of [[], [offered], begun]) equal(isDeleted(state(events)), false);
    for (const events of [[offered, deleted], [...begun, deleted], gone]) equal(isDeleted(state(events)), true);
  });

  t('its files count until they are removed, and the last state names each of them', () => {
    equal(bytesOf(state([...usable, deleted])), 1_700);
    const gone = state([...usable, deleted, removed]);
    equal(bytesOf(gone), 0);
    deepEqual(gone, { status: 'deleted', keys: [offer.key, made.key, file.key], kind: 'video' });
    deepEqual(state([offered, deleted]), { status: 'deleted', keys: [offer.key], kind: null });
  });
});
