"""gdb commands for the failing schedule of a trace. `selvedge debug` loads this file.

The program's threads are fibers of one process, so gdb sees one thread. What the fibers do is known
from the trace: which thread takes which step, where, and in which calls. The process calls
`before_step` before each step and once behind the last one; a breakpoint at the line that
HOOK names counts the steps. ARGUMENTS are those of the process, for a gdb that an editor has started.
"""

import json
import re

import gdb

# CONSTANTS


class Schedule:
    """The schedule, and where in it the process stands."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.bug = json.load(file)["bug"]
        self.steps = self.bug["trace"]
        self.stops = set()
        self.variables = set()
        # Plain variables, whose accesses are no steps.
        self.plain = []
        # Whether the process has gone on behind the last step that the hook announced.
        self.within = False
        self.hook = gdb.Breakpoint(HOOK, internal=True)
        self.hook.silent = True

    @property
    def end(self):
        """The stop behind the last step."""
        return len(self.steps) + 1

    def announced(self):
        """The last step that the hook announced, from one; zero if the program does not run."""
        return self.hook.hit_count if gdb.selected_inferior().pid else 0

    def current(self):
        """The step that comes next, from one; zero if the program does not run."""
        here = self.announced()
        return here + 1 if here and self.within else here

    def go(self, target):
        """Stops before step `target`."""
        target = max(1, min(target, self.end))
        here = self.current()
        if here == target and not self.within:
            return self.tell()
        if target < here or not gdb.selected_inferior().pid:
            self.run(target)
        else:
            self.advance(target)
        if self.current() == target:
            self.tell()

    def advance(self, target):
        """Goes on to step `target`, or to where gdb stops before."""
        self.hook.ignore_count = target - self.announced() - 1
        self.within = False
        gdb.execute("continue")

    def run(self, target):
        """Runs the program again up to step `target`: the schedule is the same each time."""
        if connection() == "remote":
            raise gdb.GdbError("going back runs the program again: start the session again, or use extended-remote")
        self.within = False
        self.hook.hit_count = 0
        self.hook.ignore_count = target - 1
        gdb.execute("run")

    def go_on(self):
        """Goes on to the next stop, which is before a step or behind an access to a plain variable."""
        if not self.plain or self.current() == 0:
            return self.go(self.next_stop(self.current()))
        target = self.next_stop(self.current())
        watches = [watch(place) for place in self.plain]
        while True:
            before = [watch.hit_count for watch in watches]
            self.advance(target)
            touched = gdb.selected_inferior().pid and before != [watch.hit_count for watch in watches]
            # What the checker does with the variable is of no interest.
            if not touched or gdb.solib_name(gdb.selected_frame().pc()):
                break
        for each in watches:
            each.delete()
        here = self.announced()
        self.within = bool(touched)
        if touched:
            line = gdb.selected_frame().find_sal()
            thread = self.steps[here - 1]["thread"] if here < self.end else self.bug["thread"]
            print("behind an access by T%d at %s:%d, after step %d" % (thread, line.symtab, line.line, here))
        elif here == target:
            self.tell()

    def next_stop(self, here):
        """The next step at which somebody wants to stop."""
        for step in self.steps[here:]:
            if step["step"] in self.stops or step.get("object") in self.variables:
                return step["step"]
        return self.end

    def tell(self):
        """Prints where the process stands."""
        here = self.current()
        if here == 0:
            print("the program does not run; selvedge goto 1 starts it")
        elif here >= self.end:
            print("at the bug: %s (T%d, %s)" % (self.bug["message"], self.bug["thread"], place(self.bug)))
        else:
            print("before " + describe(self.steps[here - 1]))

    def threads(self):
        """Each thread with its state and its calls."""
        here = max(1, self.current())
        current = self.steps[here - 1]["thread"] if here < self.end else self.bug["thread"]
        created = {0} | {int(s["object"][1:]) for s in self.steps[: here - 1] if s["operation"] == "create"}
        ends = {stack["thread"]: stack for stack in self.bug.get("stacks", [])}
        for thread in sorted(created):
            coming = next((s for s in self.steps[here - 1 :] if s["thread"] == thread), None)
            mark = "*" if thread == current else " "
            if coming is not None:
                print("%s T%d is about to do %s" % (mark, thread, describe(coming)))
                frames = self.stack(coming)
            elif thread in ends:
                print("%s T%d %s" % (mark, thread, ends[thread]["state"]))
                frames = ends[thread]["frames"]
            else:
                print("%s T%d has no further step" % (mark, thread))
                frames = []
            for frame in frames:
                print("      %s (%s)" % (frame.get("function") or "?", place(frame)))

    def stack(self, step):
        stacks = self.bug.get("call_stacks", [])
        number = step.get("stack")
        return stacks[number] if number is not None and number < len(stacks) else []

    def values(self):
        """The values of shared variables at this point of the schedule."""
        here = max(1, self.current())
        values = {}
        for step in self.steps[: here - 1]:
            if step.get("wrote") is not None and not step.get("passes"):
                values[step.get("object")] = (step["wrote"], step["step"])
            elif step.get("read") is not None and step.get("object") not in values:
                values[step.get("object")] = (step["read"], None)
        for name, (value, writer) in values.items():
            print("%s = %s (%s)" % (name, value, "step %d" % writer if writer else "initial"))


def connection():
    """How gdb is connected to the process: native, remote or extended-remote."""
    found = getattr(gdb.selected_inferior(), "connection", None)
    return found.type if found else "native"


def place(where):
    if where.get("file") and where.get("line"):
        return "%s:%d" % (where["file"], where["line"])
    return where.get("function") or "?"


def describe(step):
    parts = [step["operation"]]
    if step.get("object"):
        parts.append(step["object"])
    if step.get("read") is not None:
        parts.append("reads %s" % step["read"])
    if step.get("wrote") is not None:
        parts.append("writes %s" % step["wrote"])
    return "step %d: T%d %s (%s)" % (step["step"], step["thread"], " ".join(parts), place(step))


def count(argument):
    return int(argument) if argument.strip() else 1


def command(name, about, action):
    """Defines a command whose help is `about`."""

    class Defined(gdb.Command):
        __doc__ = about

        def __init__(self):
            super().__init__(name, gdb.COMMAND_RUNNING)

        def invoke(self, argument, from_tty):
            try:
                action(argument)
            except ValueError:
                raise gdb.GdbError("%s: a number is expected, not %r" % (name, argument))

    Defined()


def add_stop(argument):
    word = argument.strip()
    if not word:
        raise gdb.GdbError("selvedge break STEP or selvedge break VARIABLE")
    if word.isdigit():
        schedule.stops.add(int(word))
        return print("stops before step %s" % word)
    known = {step.get("object") for step in schedule.steps}
    if word in known:
        schedule.variables.add(word)
        return print("stops before each access to %s" % word)
    try:
        place = in_c(lambda: plain_variable(word))
        watch(place).delete()
    except (gdb.error, TypeError) as error:
        raise gdb.GdbError("no step of the schedule accesses %s, and it cannot be watched: %s" % (word, error))
    schedule.plain.append(place)
    print("selvedge continue stops behind each access to %s, a plain variable" % word)


def plain_variable(expression):
    """The place of a variable of the program as an expression. It is the same when the program runs again."""
    name = re.match(r"[\w:]*", expression).group()
    known = gdb.lookup_static_symbols(name) + [gdb.lookup_global_symbol(name)]
    ours = gdb.current_progspace().filename
    known = [symbol for symbol in known if symbol and symbol.is_variable and symbol.symtab.objfile.filename != ours]
    if not known:
        raise TypeError("the program has no such variable")
    value = gdb.parse_and_eval("'%s'::%s" % (known[0].symtab.filename, expression))
    return "*(char(*)[%d])%d" % (value.type.sizeof, int(value.address))


def watch(place):
    """A watchpoint at a place."""
    made = in_c(lambda: gdb.Breakpoint(place, gdb.BP_WATCHPOINT, gdb.WP_ACCESS, internal=True))
    made.silent = True
    return made


def in_c(action):
    """Does something with C's expressions: before a step, the language is that of the checker."""
    gdb.execute("set language c", to_string=True)
    try:
        return action()
    finally:
        gdb.execute("set language auto", to_string=True)


def clear_stops(argument):
    schedule.stops.clear()
    schedule.variables.clear()
    schedule.plain.clear()


def list_steps(argument):
    here = max(1, schedule.current())
    for step in schedule.steps[max(0, here - 6) : here + 5]:
        print(("> " if step["step"] == here else "  ") + describe(step))


gdb.execute("set confirm off")
gdb.execute("set pagination off")
gdb.execute("set breakpoint pending on")
# The runtime handles these itself.
gdb.execute("handle SIGSEGV SIGBUS SIGFPE SIGILL SIGALRM SIGVTALRM SIGPROF SIGTRAP nostop noprint pass", to_string=True)
gdb.execute("handle SIGTRAP stop noprint nopass", to_string=True)
gdb.execute("set args " + ARGUMENTS)
schedule = Schedule(TRACE)


class Prefix(gdb.Command):
    """Walks through the failing schedule: step, back, goto, continue, break, clear, list, values, threads, where."""

    def __init__(self):
        super().__init__("selvedge", gdb.COMMAND_RUNNING, prefix=True)


Prefix()
command("selvedge step", "One step forward, or so many.", lambda a: schedule.go(schedule.announced() + count(a)))
command("selvedge back", "One step back, or so many. The program runs again.", lambda a: schedule.go(schedule.current() - count(a)))
command("selvedge goto", "Stops before the step with this number.", lambda a: schedule.go(int(a)))
command("selvedge continue", "Goes on to the next stop, or to the bug.", lambda a: schedule.go_on())
command("selvedge break", "Stops before a step, given by its number, or at each access to a variable.", add_stop)
command("selvedge clear", "Forgets all stops.", clear_stops)
command("selvedge list", "The steps around this one.", list_steps)
command("selvedge values", "The values of shared variables.", lambda a: schedule.values())
command("selvedge threads", "The program's threads and their calls.", lambda a: schedule.threads())
command("selvedge where", "Where the schedule stands.", lambda a: schedule.tell())
command("info threads", "The program's threads and their calls.", lambda a: schedule.threads())
print("%d steps; selvedge goto N stops before one of them, help selvedge lists the commands" % len(schedule.steps))
