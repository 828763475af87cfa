import { readdir } from 'node:fs/promises';
import path from 'node:path';
import type pg from 'pg';
import { type MediaState, media, needKey, nextStep } from '#domain/media.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { foldEvents } from '#runtime/eventing/domain-store.ts';
import type { MediaEvent } from '#schemas/media.ts';
import { idOf, kindOf } from '#schemas/topics.ts';

/**
 * Invariants of media at rest: every asset has ended, each outcome was recorded once, and the blobs are those of the
 * streams.
 */

/** False also while the worker's own consumers are behind; where none ever ran there is nothing to wait for. */
export const mediaAtRest = async (pool: pg.Pool): Promise<boolean> => {
  const { rows } = await pool.query(
    `select exists (select from ops.consumer_positions where consumer_group = 'media') as runs,
       exists (select from ops.media_jobs) as busy,
       exists (select from (values ('media', 'media'), ('media-fill', 'posts')) as w (name, topic)
         join (select topic, max(position) as position from es.events where topic is not null group by topic) e using (topic)
         where coalesce((select max(position) from ops.consumer_positions c where c.consumer_group = w.name), 0)
           < e.position) as behind`,
  );
  return !rows[0].runs || (!rows[0].busy && !rows[0].behind);
};

const once: readonly MediaEvent['type'][] = [
  ...(['MediaUploadOffered', 'MediaRegistered', 'MediaImportRequested', 'MediaStored', 'MediaProbed'] as const),
  ...(['MediaTranscoded', 'MediaFailed', 'MediaQuarantined'] as const),
];

/** Keys that a stream names. */
const namedBy = (state: MediaState): readonly string[] => {
  if (state.status !== 'transcoded' && state.status !== 'transcoding') return [];
  const ready = [...state.needs.values()].flatMap((need) => (need.status === 'ready' ? [need.file.key] : []));
  return [state.stored?.key, state.poster?.key, ...ready].filter((key) => key !== undefined);
};

export const checkMedia = async (
  streams: ReadonlyMap<string, readonly DecodedEvent[]>,
  blobRoot: string,
): Promise<readonly string[]> => {
  const violations: string[] = [];
  for (const [stream, events] of streams) {
    if (kindOf(stream) !== 'media') continue;
    const story = events.map(({ type }) => type.replace(/^Media/, '')).join(' ');
    const wrong = (what: string): void => void violations.push(`${stream} ${what}: ${story}`);
    const state = foldEvents(media, events);
    if (nextStep(state) !== null) wrong(`stands before ${nextStep(state)}`);
    for (const type of once) if (events.filter((one) => one.type === type).length > 1) wrong(`says ${type} twice`);
    const met = new Set<string>();
    for (const { type, data } of events) {
      if (type !== 'MediaRenditionReady' && type !== 'MediaRenditionFailed') continue;
      const key = needKey(data as unknown as Parameters<typeof needKey>[0]);
      if (met.has(key)) wrong(`says twice what became of ${key}`);
      met.add(key);
    }
    if (state.status === 'none' || state.status === 'offered') continue;
    const workspaceId = events[0]?.metadata.workspaceId ?? '';
    const folder = path.join(blobRoot, workspaceId, idOf(stream));
    // NOTE: `~` separates a key from the version that holds its bytes.
    const there = (await readdir(folder).catch(() => [])).filter((name) => !name.includes('~'));
    const named = new Set(namedBy(state).map((key) => path.posix.basename(key)));
    for (const name of named) if (!there.includes(name)) wrong(`names the blob ${name}, which is not there`);
    for (const name of there) if (!named.has(name)) wrong(`does not name the blob ${name}, which is there`);
  }
  return violations;
};
