import type { Standalone } from './standalone.ts';

/** A post to the ten accounts of the bench's client, as a caller writes it; due in a day. */

const content = 'A post of ordinary length, as people write them, with a link https://example.com/winter. '.repeat(2);
const variants = [
  { platform: 'x', contentOverride: 'A short text for the one that takes no more.' },
  { platform: 'tiktok', overrides: { privacyLevel: 'PUBLIC_TO_EVERYONE' } },
  { platform: 'pinterest', overrides: { boardId: '918273645' } },
];

export const postOfTen = ({ clientId }: Standalone): object => ({
  clientId,
  content,
  targets: { mode: 'group', clientId },
  variants,
  schedule: { type: 'at', scheduledAt: new Date(Date.now() + 86_400_000).toISOString() },
});
