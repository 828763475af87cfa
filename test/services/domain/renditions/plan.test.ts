import { deepEqual, equal } from 'node:assert/strict';
import { initialNeeds, planRenditions, posterSpec } from '#domain/renditions/index.ts';
import { type Platform, platforms } from '#schemas/common.ts';
import type { MediaNeed, MediaProbe, MediaUse } from '#schemas/media.ts';
import { suite } from '#test/support/suite.ts';
import { documentProbe, gifProbe, imageProbe, videoProbe } from './probes.ts';

/** One line for each file of the plan, with the networks that receive it: `1080x1920 own 5000k` → `x instagram`. */
const files = (probe: MediaProbe, needs: readonly MediaNeed[] = initialNeeds(probe, platforms)) => {
  const lines = new Map<string, string[]>();
  for (const one of planRenditions(probe, needs)) {
    const name = one.use === 'feed' ? one.platform : `${one.platform}/${one.use}`;
    const line =
      one.outcome === 'rendition' ? described(one.spec) : one.outcome === 'failed' ? one.failure.code : 'fits';
    lines.set(line, [...(lines.get(line) ?? []), name]);
  }
  return Object.fromEntries([...lines].map(([line, names]) => [line, names.join(' ')]));
};

const described = (spec: Extract<ReturnType<typeof planRenditions>[number], { outcome: 'rendition' }>['spec']) => {
  const size = `${spec.width}x${spec.height}${spec.fit === 'pad' ? ' padded' : ''}`;
  if (spec.kind !== 'video') return `${spec.kind} ${size} ${spec.format}`;
  return spec.mode === 'remux'
    ? `remux ${size}${spec.sound === 'encode' ? ` sound ${spec.audio?.kbps}k` : ''}${spec.range === 'hdr' ? ' HDR' : ''}`
    : [
        `${size} ${spec.fps ?? 'own'} ${spec.videoKbps}k${spec.audio === null ? ' silent' : ''}`,
        ...(spec.range === 'hdr' ? ['HDR'] : []),
        ...(spec.rounds === undefined ? [] : [`${spec.rounds} times`]),
      ].join(' ');
};

const one = (platform: Platform, use: MediaUse, probe: MediaProbe) => planRenditions(probe, [{ platform, use }])[0];
const sentence = (platform: Platform, use: MediaUse, probe: MediaProbe) => {
  const plan = one(platform, use, probe);
  return plan?.outcome === 'failed' ? plan.failure.message : plan?.outcome;
};

const minute = { width: 1920, height: 1080, durationMs: 60_000, bytes: 60_000_000, frames: 1800 };

suite('renditions of ten networks', (t) => {
  t('a source that fits all of them is not touched', () => {
    deepEqual(files(videoProbe()), {
      fits: platforms.map((one) => (one === 'instagram' ? 'instagram/reel' : one)).join(' '),
    });
    deepEqual(files(imageProbe()), {
      fits: 'x instagram tiktok facebook linkedin threads pinterest bluesky telegram',
    });
  });

  t('a minute of 1080p30 that no network takes is encoded in two sizes', () =>
    deepEqual(files(videoProbe(minute, { profile: 'high 4:4:4 predictive', pixelFormat: 'yuv444p' })), {
      '1280x720 own 5000k': 'x telegram',
      '1920x1080 own 6000k': 'instagram/reel tiktok youtube facebook linkedin threads pinterest bluesky',
    }),
  );

  t('HEVC is encoded only for networks that do not take it', () => {
    deepEqual(files(videoProbe(minute, { codec: 'hevc', profile: 'main' })), {
      '1280x720 own 5000k': 'x telegram',
      fits: 'instagram/reel tiktok youtube threads pinterest',
      '1920x1080 own 6000k': 'facebook linkedin bluesky',
    });
    deepEqual(files(videoProbe(minute, { codec: 'hevc', profile: 'main', container: 'matroska' })), {
      '1280x720 own 5000k': 'x telegram',
      'remux 1920x1080': 'instagram/reel tiktok threads pinterest',
      fits: 'youtube',
      '1920x1080 own 6000k': 'facebook linkedin bluesky',
    });
  });

  t('a clip with a location is copied into a file without it', () =>
    deepEqual(
      files(videoProbe({ width: 1080, height: 1920 }, { container: 'mov', indexFirst: false, located: true })),
      {
        '720x1280 own 5000k': 'x',
        'remux 1080x1920': 'instagram/reel tiktok youtube facebook linkedin threads pinterest bluesky telegram',
      },
    ),
  );

  t('sound that MP4 cannot carry is encoded, the video stream is copied', () => {
    const audio = { codec: 'pcm_s16le', profile: null, channels: 2, sampleRate: 48_000, bitrate: 1_536_000 };
    deepEqual(files(videoProbe({ ...minute, audio }, { container: 'mov', located: true })), {
      '1280x720 own 5000k': 'x telegram',
      'remux 1920x1080 sound 128k': 'instagram/reel tiktok youtube facebook linkedin threads pinterest bluesky',
    });
  });

  t('sound above the bit rate of a network is encoded, the video stream is copied', () => {
    const audio = { codec: 'aac', profile: 'LC', channels: 2, sampleRate: 48_000, bitrate: 320_000 };
    deepEqual(files(videoProbe({ audio })), {
      fits: 'x tiktok youtube facebook linkedin pinterest bluesky telegram',
      'remux 720x1280 sound 128k': 'instagram/reel threads',
    });
  });

  t('YouTube receives the size, dynamic range and rotation of the source', () => {
    const camera = { codec: 'hevc', profile: 'main 10', pixelFormat: 'yuv420p10le', hdr: true, rotation: 90 } as const;
    const large = { ...minute, width: 2160, height: 3840 };
    const youtube = [{ platform: 'youtube', use: 'feed' }] as const;
    const madeOf = (video: object, probe: object = large) => Object.keys(files(videoProbe(probe, video), youtube));
    deepEqual(files(videoProbe(large, { ...camera, container: 'mov' })), {
      '720x1280 own 5000k': 'x telegram',
      '1080x1920 own 6000k': 'instagram/reel tiktok facebook linkedin threads pinterest bluesky',
      fits: 'youtube',
    });
    deepEqual(madeOf({ ...camera, container: 'mov', located: true }), ['remux 2160x3840 HDR']);
    deepEqual(madeOf({ ...camera, interlaced: true }), ['2160x3840 own 40000k HDR']);
    deepEqual(madeOf({ interlaced: true, fps: 60 }), ['2160x3840 own 60000k']);
    deepEqual(madeOf({ interlaced: true }, { ...minute, width: 2560, height: 1440 }), ['2560x1440 own 16000k']);
    deepEqual(madeOf({ interlaced: true }, { ...minute, width: 7680, height: 4320 }), ['3840x2160 own 40000k']);
    deepEqual(madeOf({ codec: 'vp9', profile: 'profile 2', pixelFormat: 'yuv420p10le', hdr: true }), ['fits']);
  });

  t('a limit on bytes chooses the largest size whose bit rate fits', () =>
    deepEqual(files(videoProbe({ ...minute, durationMs: 600_000, bytes: 3_000_000_000 }, { hdr: true })), {
      media_too_long: 'x threads',
      '1920x1080 own 3000k': 'instagram/reel linkedin bluesky',
      '1920x1080 own 6000k': 'tiktok facebook pinterest',
      fits: 'youtube',
      '640x360 own 300k': 'telegram',
    }),
  );

  t('a source that cannot be made to fit a network fails for that network alone, with a message', () => {
    const hours = videoProbe({ ...minute, durationMs: 10_800_000 });
    deepEqual(files(hours), {
      media_too_long: 'x instagram/reel tiktok linkedin threads pinterest bluesky',
      fits: 'youtube facebook',
      media_too_heavy: 'telegram',
    });
    equal(sentence('x', 'feed', hours), 'X takes videos of at most 140 s; this one has 10,800 s');
    equal(
      sentence('instagram', 'story', hours),
      'Instagram takes videos in a story of at most 60 s; this one has 10,800 s',
    );
    equal(
      sentence('facebook', 'reel', videoProbe({ durationMs: 2500 })),
      'Facebook takes videos as a reel of at least 3 s; this one has 2.5 s',
    );
    equal(
      sentence('telegram', 'feed', hours),
      'Telegram takes videos of at most 50 MB; 10,800 s cannot be made that small and still be seen',
    );
    equal(sentence('x', 'feed', documentProbe()), 'X takes no documents');
    equal(sentence('telegram', 'feed', documentProbe({ contentType: 'text/plain' })), 'Telegram takes no documents');
    // A gif of one frame is an image to a network, and to the words.
    equal(sentence('youtube', 'feed', gifProbe({ frames: 1 })), 'YouTube takes no images');
    equal(sentence('x', 'reel', videoProbe()), 'X takes no videos as a reel');
    equal(
      sentence('instagram', 'feed', imageProbe({ width: 20, height: 20 })),
      'This one is too small for Instagram: it has 20 by 20 pixels and would have to be enlarged more than four times',
    );
    equal(
      sentence('linkedin', 'feed', documentProbe({ bytes: 104_000_000 })),
      'LinkedIn takes documents of at most 100 MB; this one has 104 MB',
    );
  });

  t('a common constant frame rate is kept, any other becomes a standard one', () => {
    const rates: readonly (readonly [fps: number | null, steady: boolean, made: number | null])[] = [
      [24, true, null],
      [23.976, true, null],
      [29.97, true, null],
      [60, true, null],
      [59.94, false, 60],
      [29.3, false, 30],
      [24.6, false, 25],
      [15, true, 30],
      [12, true, 24],
      [12.5, true, 25],
      [7, true, 30],
      [120, true, 30],
      [null, true, 30],
    ];
    for (const [fps, constantRate, made] of rates) {
      const plan = one('linkedin', 'feed', videoProbe({}, { fps, constantRate, codec: 'vp9', profile: 'profile 0' }));
      equal(plan?.outcome === 'rendition' && plan.spec.kind === 'video' && plan.spec.fps, made, `${fps}`);
    }
  });

  t('twice the frame rate gets one and a half times the bit rate', () =>
    equal(
      files(videoProbe(minute, { fps: 60, interlaced: true }))['1920x1080 own 9000k'],
      'instagram/reel tiktok youtube facebook linkedin threads pinterest bluesky',
    ),
  );

  t('a video is enlarged only to reach a minimum size', () =>
    deepEqual(files(videoProbe({ width: 320, height: 240 }, { hdr: true, fps: 25 })), {
      '320x240 own 1200k': 'x instagram/reel facebook linkedin threads pinterest bluesky telegram',
      '480x360 own 1200k': 'tiktok',
      fits: 'youtube',
    }),
  );

  t('a source of another aspect ratio is padded, never cropped', () => {
    deepEqual(files(videoProbe(minute), [{ platform: 'facebook', use: 'reel' }]), {
      '1080x1920 padded own 6000k': 'facebook/reel',
    });
    deepEqual(files(videoProbe({ ...minute, height: 540 }), [{ platform: 'facebook', use: 'feed' }]), {
      '1920x1080 padded own 6000k': 'facebook',
    });
    deepEqual(files(imageProbe({ width: 1000, height: 3000 }), [{ platform: 'instagram', use: 'feed' }]), {
      'image 1080x1350 padded jpeg': 'instagram',
    });
  });

  t('a file close to the limit of bytes is encoded, because its copy could exceed the limit', () => {
    const long = { ...minute, durationMs: 30_000 };
    const located = { located: true };
    deepEqual(files(videoProbe({ ...long, bytes: 49_000_000 }, located), [{ platform: 'telegram', use: 'feed' }]), {
      'remux 1920x1080': 'telegram',
    });
    deepEqual(files(videoProbe({ ...long, bytes: 49_900_000 }, located), [{ platform: 'telegram', use: 'feed' }]), {
      '1280x720 own 5000k': 'telegram',
    });
  });

  t('a photo of a camera becomes two files for all networks', () => {
    const photo = imageProbe({ width: 4032, height: 3024, bytes: 5_400_000 }, { upright: false, located: true });
    deepEqual(files(photo), {
      'image 2048x1536 jpeg': 'x facebook linkedin pinterest telegram',
      'image 1440x1080 jpeg': 'instagram tiktok threads bluesky',
    });
    const made = planRenditions(photo, initialNeeds(photo, platforms));
    const ids = made.map((one) => (one.outcome === 'rendition' ? one.id : one.outcome));
    equal(new Set(ids).size, 2, 'networks whose limits differ share a file');
  });

  t('a file of unknown sides or length is not planned for', () => {
    for (const [platform, probe] of [
      ['x', imageProbe({ width: null })],
      ['x', imageProbe({ height: null })],
      ['x', videoProbe({ width: null })],
      ['x', videoProbe({ height: null })],
      ['x', videoProbe({ durationMs: null })],
      ['tiktok', gifProbe({ width: null })],
      ['tiktok', gifProbe({ height: null })],
      ['tiktok', gifProbe({ durationMs: null })],
    ] as const) {
      const plan = one(platform, 'feed', probe);
      equal(plan?.outcome === 'failed' && plan.failure.code, 'media_unreadable', JSON.stringify(probe));
    }
    equal(
      sentence('x', 'feed', imageProbe({ width: null })),
      'X takes images, but the size or length of this one cannot be read',
    );
  });

  t('a gif becomes a silent video where the network takes no gif', () =>
    deepEqual(files(gifProbe()), {
      fits: 'x linkedin',
      '480x480 30 2000k silent': 'instagram/reel tiktok youtube facebook threads pinterest bluesky telegram',
    }),
  );

  t('a gif below the minimum duration is repeated until it is long enough', () => {
    deepEqual(files(gifProbe({ durationMs: 800, frames: 8 })), {
      fits: 'x linkedin',
      '480x480 30 2000k silent 4 times': 'instagram/reel tiktok',
      '480x480 30 2000k silent': 'youtube facebook threads bluesky telegram',
      '480x480 30 2000k silent 6 times': 'pinterest',
    });
    const [plan] = planRenditions(gifProbe({ durationMs: 1500 }), [{ platform: 'tiktok', use: 'feed' }]);
    const spec = plan?.outcome === 'rendition' && plan.spec.kind === 'video' ? plan.spec : null;
    // Twice would be exactly 3 s, and an encoder may fall short of that by some milliseconds.
    deepEqual([spec?.rounds, spec?.maxBytes], [3, 1_803_036]);
    equal(sentence('tiktok', 'feed', videoProbe({ durationMs: 1500 }))?.includes('at least 3 s'), true);
  });

  t('covers are made from an image, or from the poster’s frame of a video', () => {
    const covers = (['youtube', 'instagram', 'facebook', 'pinterest', 'telegram'] as const).map((platform) => ({
      platform,
      use: 'cover' as const,
    }));
    deepEqual(files(imageProbe({ width: 1080, height: 1920 }), covers), {
      'image 1280x720 padded jpeg': 'youtube/cover',
      fits: 'instagram/cover facebook/cover pinterest/cover telegram/cover',
    });
    deepEqual(files(videoProbe(minute), [{ platform: 'youtube', use: 'cover' }]), {
      'frame 1280x720 jpeg': 'youtube/cover',
    });
    const plan = one('instagram', 'cover', videoProbe({ durationMs: 900 }));
    equal(plan?.outcome === 'rendition' && plan.spec.kind === 'frame' && plan.spec.atMs, 450);
    equal(one('x', 'cover', imageProbe())?.outcome, 'failed');
    equal(one('tiktok', 'cover', imageProbe())?.outcome, 'failed');
  });

  t('the id of a rendition is derived from its spec and never changes', () => {
    const plan = one('x', 'feed', videoProbe(minute));
    equal(plan?.outcome === 'rendition' && plan.id, 'c2ea353c926dc071fadedccdd2a068f1');
  });
});

suite('renditions of a new file', (t) => {
  const uses = (needs: readonly MediaNeed[]) => needs.map(({ platform, use }) => `${platform}/${use}`).join(' ');
  t('are those that a post without overrides uses', () => {
    equal(uses(initialNeeds(videoProbe(), ['x', 'instagram', 'facebook', 'x'])), 'x/feed instagram/reel facebook/feed');
    equal(uses(initialNeeds(gifProbe(), ['instagram'])), 'instagram/reel');
    equal(uses(initialNeeds(imageProbe(), ['instagram', 'tiktok'])), 'instagram/feed tiktok/feed');
    deepEqual(initialNeeds(imageProbe(), []), []);
  });

  t('leave out a kind that the network never takes, and keep a file that it cannot be given', () => {
    equal(uses(initialNeeds(imageProbe(), ['youtube', 'x'])), 'x/feed');
    equal(uses(initialNeeds(documentProbe(), platforms)), 'linkedin/feed telegram/feed');
    equal(uses(initialNeeds(gifProbe({ frames: 1, durationMs: null }), ['youtube'])), '');
    const endless = videoProbe({ durationMs: 13 * 3_600_000 });
    equal(uses(initialNeeds(endless, ['youtube'])), 'youtube/feed');
    equal(one('youtube', 'feed', endless)?.outcome, 'failed');
  });

  t('include a poster, except of what has no sides', () => {
    deepEqual(posterSpec(videoProbe(minute)), {
      kind: 'frame',
      format: 'jpeg',
      width: 1280,
      height: 720,
      fit: 'scale',
      atMs: 1000,
      quality: 85,
      maxBytes: 1_000_000,
    });
    deepEqual(posterSpec(imageProbe({ width: 300, height: 200 })), {
      kind: 'image',
      format: 'jpeg',
      width: 300,
      height: 200,
      fit: 'scale',
      quality: 85,
      maxBytes: 1_000_000,
    });
    equal(posterSpec(gifProbe())?.kind, 'image');
    equal(posterSpec(documentProbe()), null);
    for (const sides of [{ width: null }, { height: null }]) equal(posterSpec(videoProbe(sides)), null);
  });
});
