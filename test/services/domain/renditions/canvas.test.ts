import { deepEqual } from 'node:assert/strict';
import { about, anySize, upTo, within } from '#domain/platforms/media-blocks.ts';
import type { SizeRules } from '#domain/platforms/media-rules.ts';
import { canvasOf } from '#domain/renditions/canvas.ts';
import { suite } from '#test/support/suite.ts';

const wide = { long: 100_000, short: 100_000, width: 100_000 };
type Sides = readonly [width: number, height: number];

const made = (
  limits: Partial<SizeRules>,
  [width, height]: Sides,
  { box = wide, step = 1 as 1 | 2 }: { readonly box?: typeof wide; readonly step?: 1 | 2 } = {},
) => {
  const canvas = canvasOf({ ...anySize, ...limits }, { width, height }, box, step);
  return canvas === null ? null : `${canvas.width}x${canvas.height}${canvas.fit === 'pad' ? ' padded' : ''}`;
};

suite('canvas of a rendition', (t) => {
  t('is the source where nothing limits it, with even sides where they must be', () => {
    deepEqual(made({}, [1_001, 701]), '1001x701');
    deepEqual(made({}, [1, 1]), '1x1');
    deepEqual(made({}, [1_001, 701], { step: 2 }), '1002x702');
    deepEqual(made({}, [1_000, 700], { step: 2 }), '1000x700');
  });

  t('stays inside its box, either way round, and is never enlarged to it', () => {
    const box = { long: 1_920, short: 1_080, width: 1_440 };
    deepEqual(made({}, [3_840, 2_880], { box }), '1440x1080');
    deepEqual(made({}, [2_160, 3_840], { box }), '1080x1920');
    deepEqual(made({}, [1_000, 4_000], { box }), '480x1920');
    deepEqual(made({}, [4_000, 1_000], { box }), '1440x360');
    deepEqual(made({}, [1_200, 1_200], { box }), '1080x1080');
    deepEqual(made({}, [640, 360], { box }), '640x360');
  });

  t('keeps each limit of the network', () => {
    const table: readonly (readonly [Partial<SizeRules>, Sides, string])[] = [
      [{ width: upTo(500) }, [1_000, 2_000], '500x1000'],
      [{ height: upTo(500) }, [2_000, 1_000], '1000x500'],
      [{ long: upTo(500) }, [1_000, 400], '500x200'],
      [{ long: upTo(500) }, [400, 1_000], '200x500'],
      [{ short: upTo(500) }, [3_000, 1_000], '1500x500'],
      [{ short: upTo(500) }, [1_000, 3_000], '500x1500'],
      [{ maxPixels: 1_000_000 }, [4_000, 1_000], '2000x500'],
      [{ maxSum: 1_000 }, [3_000, 1_000], '750x250'],
      [{ maxSum: 1_000, maxPixels: 40_000 }, [1_600, 100], '800x50'],
    ];
    for (const [limits, source, size] of table) deepEqual(made(limits, source), size, JSON.stringify(limits));
  });

  // The rules of a network are kept before the box of the house is.
  t('is enlarged to a minimum, by four times at most', () => {
    const table: readonly (readonly [Partial<SizeRules>, Sides, string | null])[] = [
      [{ width: { min: 400, max: 5_000 } }, [100, 200], '400x800'],
      [{ width: { min: 401, max: 5_000 } }, [100, 200], null],
      [{ height: { min: 400, max: 5_000 } }, [200, 100], '800x400'],
      [{ height: { min: 401, max: 5_000 } }, [200, 100], null],
      [{ long: { min: 400, max: 5_000 } }, [100, 50], '400x200'],
      [{ long: { min: 400, max: 5_000 } }, [50, 100], '200x400'],
      [{ long: { min: 401, max: 5_000 } }, [50, 100], null],
      [{ short: { min: 400, max: 5_000 } }, [100, 200], '400x800'],
      [{ short: { min: 400, max: 5_000 } }, [200, 100], '800x400'],
      [{ short: { min: 401, max: 5_000 } }, [200, 100], null],
    ];
    for (const [limits, source, size] of table) deepEqual(made(limits, source), size, JSON.stringify(limits));
    const box = { long: 100, short: 100, width: 100 };
    deepEqual(made({ short: { min: 300, max: 5_000 } }, [1_200, 600], { box }), '600x300');
  });

  t('has bars where the ratio is not taken, up to the nearest one', () => {
    const aspect = within(0.8, 2);
    deepEqual(made({ aspect }, [400, 500]), '400x500');
    deepEqual(made({ aspect }, [1_000, 500]), '1000x500');
    deepEqual(made({ aspect }, [300, 500]), '400x500 padded');
    deepEqual(made({ aspect }, [1_000, 400]), '1000x500 padded');
    // Bars are made to the ratio as the network writes it, not to the slack of rounding.
    deepEqual(made({ aspect: about(9 / 16, 9 / 16) }, [1_920, 1_080], { step: 2 }), '1920x3414 padded');
    deepEqual(made({ aspect: about(9 / 16, 9 / 16) }, [478, 854]), '478x854');
  });

  t('has bars where no size of its ratio keeps the limits of the sides', () => {
    const sides = { width: { min: 100, max: 1_000 }, height: { min: 100, max: 1_000 } };
    deepEqual(made(sides, [1_000, 100]), '1000x100');
    deepEqual(made(sides, [2_000, 100]), '1000x100 padded');
    deepEqual(made(sides, [100, 2_000]), '100x1000 padded');
    const longShort = { long: { min: 100, max: 1_000 }, short: { min: 200, max: 1_000 } };
    deepEqual(made(longShort, [1_000, 200]), '1000x200');
    deepEqual(made(longShort, [1_000, 100]), '1000x200 padded');
    deepEqual(made(longShort, [100, 1_000]), '200x1000 padded');
  });

  t('is rounded to the sides that bend the picture least, and to none that break a rule', () => {
    deepEqual(made({ width: upTo(333) }, [1_000, 500]), '332x166');
    deepEqual(made({ aspect: within(2, 2) }, [999, 500]), '1000x500 padded');
    deepEqual(made({ width: { min: 101, max: 101 } }, [200, 100], { step: 2 }), null);
  });
});
