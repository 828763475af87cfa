import { type MediaCommand, media, withoutQuery } from '#domain/media.ts';
import { uuidv7 } from '#runtime/eventing/domain-store.ts';
import { MediaAccepted, MediaImport } from '#schemas/http/media.ts';
import { ImportUrls } from '#services/workflows/import-urls.ts';
import { acceptedMedia } from '../media/answers.ts';
import { fileNameOfUrl, nameOf, platformsOf, requireLiveClient, requireRoom } from '../media/checks.ts';
import { importExample } from '../media/examples.ts';
import { operation } from '../operation.ts';
import { requireAllowedUrl } from '../webhooks/checks.ts';

/**
 * Stores the whole address, then appends the request. If we die before the append, the key is free, and the media
 * worker finds the stored address by its age and destroys it. If we die after the append, the worker fetches the file.
 */
export const importMedia = operation({
  id: 'importMedia',
  method: 'POST',
  path: '/media/import-url',
  tag: 'media',
  summary: 'Import a file by its address',
  description:
    'The service fetches and transcodes the file afterwards; a file that it cannot use fails the asset. Redirects are followed to public addresses only. The query of the address is kept, encrypted, until the file is fetched or given up. The length of the file counts against the quota of the workspace and its sandbox once it is fetched; without room the asset fails with `import_no_room`.',
  scope: 'media.manage',
  idempotent: 'required',
  cost: 1,
  etag: true,
  body: MediaImport,
  answer: MediaAccepted,
  codes: ['url_not_allowed', 'client_archived', 'media_quota_exceeded'],
  example: importExample,
  handle: async (call) => {
    const { deps, body } = call;
    const url = withoutQuery(body.url);
    const source = url === body.url ? null : uuidv7();
    const { events, replayed } = await call.stream(media).create({
      command: async (): Promise<MediaCommand> => {
        await requireAllowedUrl(deps, body.url);
        const clientId = body.clientId ?? null;
        await requireLiveClient(call, clientId);
        return {
          type: 'RequestImport',
          url,
          ...(source === null ? {} : { source }),
          name: body.name === undefined ? fileNameOfUrl(deps.egress.checkUrl(body.url)) : nameOf(body.name),
          clientId,
          folder: body.folder ?? null,
          altText: body.altText ?? null,
          platforms: await platformsOf(call, clientId, body.platforms),
        };
      },
      reserve: async (id) => {
        // The length of the file is unknown: the worker counts it when the file is here. The import does not begin
        // without room for one byte.
        await requireRoom(call, id, 1);
        if (source !== null) await new ImportUrls(deps.pool, deps.secrets).keep(source, id, body.url);
      },
    });
    const data = await acceptedMedia(call, events);
    return { data, revision: data.revision, replayed };
  },
});
