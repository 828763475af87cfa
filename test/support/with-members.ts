/**
 * The same object with some members of a test's own. The others see the object itself, as a class with private fields
 * demands.
 */
export const withMembers = <T extends object>(whole: T, members: Partial<T>): T =>
  new Proxy(whole, {
    get: (of, name) => {
      if (Object.hasOwn(members, name)) return Reflect.get(members, name);
      const member: unknown = Reflect.get(of, name, of);
      return typeof member === 'function' ? member.bind(of) : member;
    },
  });
