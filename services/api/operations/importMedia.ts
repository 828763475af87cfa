import { type MediaCommand, media } from '#domain/media.ts';
import { birth } from '#runtime/idempotency.ts';
import { MediaAccepted, MediaImport } from '#schemas/http/media.ts';
import { acceptedMedia } from '../media/answers.ts';
import { fileNameOfUrl, nameOf, platformsOf, requireLiveClient } from '../media/checks.ts';
import { importExample } from '../media/examples.ts';
import { operation } from '../operation.ts';
import { requireAllowedUrl } from '../webhooks/checks.ts';

/** The request's append is the whole of it. If we die before, the key is free; after, the worker fetches the file. */
export const importMedia = operation({
  id: 'importMedia',
  method: 'POST',
  path: '/media/import-url',
  tag: 'media',
  summary: 'Import a file by its address',
  description:
    'The file is fetched and transcoded afterwards; what is wrong with it fails the asset. Redirects are followed to public addresses only.',
  scope: 'media.manage',
  idempotent: 'required',
  cost: 1,
  etag: true,
  body: MediaImport,
  answer: MediaAccepted,
  codes: ['url_not_allowed', 'client_archived'],
  example: importExample,
  handle: async (call) => {
    const { deps, body, context, positions } = call;
    const born = await birth({
      store: deps.store,
      decider: media,
      operation: 'importMedia',
      key: call.key ?? '',
      context,
      positions,
      command: async (): Promise<MediaCommand> => {
        await requireAllowedUrl(deps, body.url);
        const clientId = body.clientId ?? null;
        await requireLiveClient(call, clientId);
        return {
          type: 'RequestImport',
          url: body.url,
          name: body.name === undefined ? fileNameOfUrl(deps.egress.checkUrl(body.url)) : nameOf(body.name),
          clientId,
          folder: body.folder ?? null,
          altText: body.altText ?? null,
          platforms: await platformsOf(call, clientId, body.platforms),
        };
      },
    });
    const data = await acceptedMedia(call, born.events);
    return { data, revision: data.revision, replayed: born.replayed };
  },
});
