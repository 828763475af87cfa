import { Type } from 'typebox';
import { ClientFields, clientWords } from '#schemas/client.ts';
import { Uuid } from '#schemas/common.ts';
import { OpenEnum, said } from '#schemas/published.ts';
import { example, publicEvent } from './common.ts';

/**
 * Events of a client. Its rules and its voice may be of any size: the events say that they changed, not their content.
 */

const { name, type, defaultPostMode, timezone, approvalRequired } = ClientFields.properties;
const clientId = said(Uuid, 'Id of the client.');
const shown = {
  name: said(name, clientWords.name),
  type: said(type, clientWords.type),
  defaultPostMode: said(defaultPostMode, clientWords.defaultPostMode),
  timezone: said(timezone, clientWords.timezone, { examples: ['Europe/Berlin'] }),
  approvalRequired: said(approvalRequired, clientWords.approvalRequired),
};
const Member = OpenEnum(
  'ClientMember',
  Object.keys(ClientFields.properties),
  'A member of a client, under the name that GET /clients/{id} gives it.',
);
const acme = {
  name: 'Acme',
  type: 'brand' as const,
  defaultPostMode: 'schedule' as const,
  timezone: 'Europe/Berlin',
  approvalRequired: false,
};

export const clientPublic = {
  'client.created': publicEvent('A caller created a client.', Type.Object({ clientId, ...shown }), {
    clientId: example.clientId,
    ...acme,
  }),
  'client.updated': publicEvent(
    'A caller changed a client.',
    Type.Object({
      clientId,
      changed: Type.Array(Member, {
        minItems: 1,
        description: 'The changed members; of `rules` and `brandVoice` the event shows no more than that.',
      }),
      ...shown,
    }),
    { clientId: example.clientId, changed: ['timezone', 'rules'], ...acme },
  ),
  'client.archived': publicEvent('A caller archived a client: it takes no new posts.', Type.Object({ clientId }), {
    clientId: example.clientId,
  }),
  'client.erased': publicEvent(
    'An operator erased the personal data of a client and of its accounts: nobody can read that data any more.',
    Type.Object({ clientId }),
    { clientId: example.clientId },
  ),
};
