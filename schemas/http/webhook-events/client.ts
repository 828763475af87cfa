import { Type } from 'typebox';
import { ClientFields } from '#schemas/client.ts';
import { Uuid } from '#schemas/common.ts';
import { example, publicEvent } from './common.ts';

/**
 * Events of a client. Its rules and its voice may be of any size: the events say that they changed, not their content.
 */

const { name, type, defaultPostMode, timezone, approvalRequired } = ClientFields.properties;
const shown = { name, type, defaultPostMode, timezone, approvalRequired };
const acme = {
  name: 'Acme',
  type: 'brand' as const,
  defaultPostMode: 'schedule' as const,
  timezone: 'Europe/Berlin',
  approvalRequired: false,
};

export const clientPublic = {
  'client.created': publicEvent('A client was created.', Type.Object({ clientId: Uuid, ...shown }), {
    clientId: example.clientId,
    ...acme,
  }),
  'client.updated': publicEvent(
    'A client was changed.',
    Type.Object({
      clientId: Uuid,
      changed: Type.Array(Type.Enum(Object.keys(ClientFields.properties)), { minItems: 1 }),
      ...shown,
    }),
    { clientId: example.clientId, changed: ['timezone', 'rules'], ...acme },
  ),
  'client.archived': publicEvent('A client was archived: it takes no new posts.', Type.Object({ clientId: Uuid }), {
    clientId: example.clientId,
  }),
};
