import { media } from '#projections/models/media.ts';
import { fittingProbe } from '#test/support/assets.ts';
import { everyEventIsProjected, given, ids, instant, on } from '#test/support/projecting.ts';
import { readModelsPool } from '#test/support/read-models.ts';
import { suite } from '#test/support/suite.ts';

const pool = await readModelsPool();

suite('read models: media', (t) => {
  t('media: offered, registered, probed, transcoded; each need has its newest state', async () => {
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

  everyEventIsProjected(t, 'media');
});
