import { media } from '#domain/media.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import type { ImportUrls } from '#services/workflows/import-urls.ts';

/** Hours after which an address that no import names is destroyed: the api crashed before it stored the import. */
const maxHours = 1;
const batch = 100;

export interface ImportsDeps {
  readonly store: DomainStore;
  readonly importUrls: ImportUrls;
}

/** @returns how many addresses it destroyed */
export const clearImports = async ({ store, importUrls }: ImportsDeps, signal: AbortSignal): Promise<number> => {
  let cleared = 0;
  for (let more = true; more && !signal.aborted; ) {
    const rows = await importUrls.old(maxHours, batch);
    const needed: string[] = [];
    for (const { id, assetId } of rows) if (await isNeeded(store, id, assetId)) needed.push(id);
    const gone = rows.flatMap(({ id }) => (needed.includes(id) ? [] : [id]));
    await importUrls.drop(gone);
    await importUrls.putBack(needed);
    cleared += gone.length;
    more = rows.length === batch;
  }
  return cleared;
};

const isNeeded = async (store: DomainStore, id: string, assetId: string): Promise<boolean> => {
  const { state } = await store.load(media, assetId);
  if (state.status !== 'transcoding' || state.stored !== null) return false;
  return state.origin.kind === 'import' && state.origin.source === id;
};
