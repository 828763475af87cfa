import { MediaAccepted, MediaRegister } from '#schemas/http/media.ts';
import { acceptedMedia } from '../media/answers.ts';
import { registerExample } from '../media/examples.ts';
import { registerUpload } from '../media/register.ts';
import { operation } from '../operation.ts';
import { keptWarnings } from '../warnings.ts';

const described = Object.keys(MediaRegister.properties).filter((name) => name !== 'assetId');

export const registerMedia = operation({
  id: 'registerMedia',
  method: 'POST',
  path: '/media',
  tag: 'media',
  summary: 'Register an uploaded file',
  description:
    'The service then examines the file and makes its renditions: wait for the event `media.ready`, or GET the asset until `publishable` is true. An asset that is registered already is answered unchanged, and `meta.warnings` names the members that change nothing.',
  scope: 'media.manage',
  idempotent: 'required',
  cost: 1,
  etag: true,
  body: MediaRegister,
  answer: MediaAccepted,
  codes: ['media_not_uploaded', 'media_quota_exceeded', 'client_archived'],
  example: registerExample,
  handle: async (call) => {
    const { events, revision, replayed } = await registerUpload(call);
    const data = await acceptedMedia(call, events);
    const registered = events.find(({ type }) => type === 'MediaRegistered')?.metadata;
    const warnings = registered?.keyHmac === call.context.keyHmac ? [] : keptWarnings(call, described, data);
    return { data, revision, replayed, warnings };
  },
});
