import { hash } from 'node:crypto';

/** How rows of what the authorization server issued are found. */

/** Ids of grants are no secrets, but one rule for all leaves no room for a mistake. */
export const hashOf = (id: string): Buffer => hash('sha256', id, 'buffer');

/** What the page of consent shows of the app, in the row of an authorization. */
export interface AppOfInteraction {
  readonly name: string | null;
  /** Its id is the address of its metadata document. */
  readonly hasDocument: boolean;
}
