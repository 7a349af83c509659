"""gdb commands for the failing schedule of a trace. `selvedge debug` loads this file.

The program's threads are fibers of one process, so gdb sees one thread. What the fibers do is known
from the trace: which thread takes which step, where, and in which calls. The process calls
`before_step` before each step and once behind the last one; a breakpoint at the line that
HOOK names counts the steps. ARGUMENTS are those of the process, for a gdb that an editor has started.

There the process runs the checker, whose stack is of no interest. The frame of `before_step` gets the frames
of the program's thread as its callers: see `ProgramStack`.
"""

import json
import re

import gdb
import gdb.unwinder

# CONSTANTS

# What lies where the stack pointer of a suspended fiber points, lowest address first.
SAVED = ["r15", "r14", "r13", "r12", "rbx", "rbp", "rip"]


class ProgramStack(gdb.unwinder.Unwinder):
    """Continues the stack behind `before_step` on that of the thread whose step comes next.

    The thread is suspended in the checker, into which an operation of the program has led. So its frames
    are walked once, from the registers that it was suspended with, to find the innermost one of the
    program; from then on that is the caller of `before_step`.
    """

    def __init__(self):
        super().__init__("selvedge")
        self.forget()

    def forget(self):
        self.hook = None
        self.caller = None

    def thread(self):
        """The thread that the process runs, told by the stack."""
        start, part = self.area
        return (read(gdb.newest_frame(), "rsp") - start) // part

    def __call__(self, pending):
        if self.caller is None or int(pending.read_register("rip")) != self.hook:
            return None
        # A frame has to lie deeper than its caller.
        info = pending.create_unwind_info(FrameId(register(self.caller["rsp"] - 16), register(self.hook)))
        for name, value in self.caller.items():
            info.add_saved_register(name, register(value))
        return info

    def find(self):
        """Finds the program's frames, if the process is at the hook, and selects the innermost one."""
        self.forget()
        frame = gdb.newest_frame()
        self.area = (read(frame, "r8"), read(frame, "r9"))
        suspended_at = read(frame, "rdx")
        if not suspended_at:
            return
        self.hook = frame.pc()
        words = gdb.selected_inferior().read_memory(suspended_at, 8 * len(SAVED)).tobytes()
        values = [int.from_bytes(words[8 * n : 8 * n + 8], "little") for n in range(len(SAVED))]
        self.caller = dict(zip(SAVED, values))
        self.caller["rsp"] = suspended_at + 8 * len(SAVED)
        gdb.invalidate_cached_frames()
        frame = gdb.newest_frame().older()
        # The checker may call the C library, and it starts the thread: what lies between is the program's.
        while frame is not None and not (in_program(frame) and calls_checker(frame)):
            frame = frame.older()
        if frame is None:
            self.caller = None
        else:
            self.caller = {name: read(frame, name) for name in SAVED + ["rsp"]}
        gdb.invalidate_cached_frames()
        if self.caller is not None:
            gdb.newest_frame().older().select()



class FrameId:
    """A frame by its place on the stack and in the code."""

    def __init__(self, sp, pc):
        self.sp = sp
        self.pc = pc


def register(value):
    return gdb.Value(value).cast(gdb.selected_inferior().architecture().integer_type(64, False))


def read(frame, register):
    return int(frame.read_register(register)) & (2**64 - 1)


def in_program(frame):
    """Whether a frame is one of the program or of a library, and not of the checker."""
    return gdb.solib_name(frame.pc()) is not None


def calls_checker(frame):
    callee = frame.newer()
    return callee is not None and not in_program(callee)


def is_at_hook():
    sal = gdb.newest_frame().find_sal()
    return sal.symtab is not None and HOOK.endswith("%s:%d" % (sal.symtab.filename.split("/")[-1], sal.line))


class Schedule:
    """The schedule, and where in it the process stands."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.bug = json.load(file)["bug"]
        self.steps = self.bug["trace"]
        self.stops = set()
        self.variables = set()
        # The same by their addresses.
        self.ranges = []
        # Plain variables, whose accesses are no steps.
        self.plain = []
        # Whether the process has gone on behind the last step that the hook announced.
        self.within = False
        # Whether a command of this file runs the process.
        self.commanded = False
        self.program = ProgramStack()
        gdb.unwinder.register_unwinder(None, self.program, replace=True)
        self.hook = gdb.Breakpoint(HOOK, internal=True)
        self.hook.silent = True
        self.accesses = gdb.Breakpoint(HOOK, internal=True)
        self.accesses.silent = True
        self.accesses.enabled = False

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
            self.show()

    def show(self):
        """Prints the line of the program where the process stands, and what the user wants to see at each stop."""
        if gdb.selected_frame().level() > 0:
            gdb.execute("frame")
            gdb.execute("display")

    def advance(self, target):
        """Goes on to step `target`, or to where gdb stops before."""
        self.hook.ignore_count = max(0, target - self.announced() - 1)
        self.within = False
        self.run_on("continue")

    def run(self, target):
        """Runs the program again up to step `target`: the schedule is the same each time."""
        if connection() == "remote":
            raise gdb.GdbError("going back runs the program again: start the session again, or use extended-remote")
        self.within = False
        self.hook.hit_count = 0
        self.hook.ignore_count = target - 1
        self.run_on("run")

    def run_on(self, command):
        """Runs the process to its next stop."""
        self.commanded = True
        # gdb says each time how it finds threads.
        said = gdb.execute(command, to_string=True).splitlines()
        self.commanded = False
        noise = ("[Thread debugging", "Using host libthread_db", "Starting program:", "Continuing.")
        for line in said:
            if line and not line.startswith(noise):
                print(line)
        # gdb's own commands do not stop before each step.
        self.hook.ignore_count = max(0, self.end - self.announced() - 1)


    def go_on(self):
        """Goes on to the next stop, which is before a step or behind an access to a plain variable."""
        if self.current() >= self.end:
            return self.tell()
        target = self.next_stop(self.current())
        if self.current() == 0 or not self.plain + self.ranges:
            return self.go(target)
        self.accesses.condition = " || ".join("($rcx >= %d && $rcx < %d)" % ends for ends in self.ranges) or "0"
        self.accesses.enabled = True
        watches = [watch(place) for place in self.plain]
        while True:
            before = [watch.hit_count for watch in watches]
            self.advance(target)
            touched = gdb.selected_inferior().pid and before != [watch.hit_count for watch in watches]
            # What the checker does with the variable is of no interest.
            if not touched or in_program(gdb.newest_frame()):
                break
        for each in watches:
            each.delete()
        self.accesses.enabled = False
        here = self.announced()
        self.within = bool(touched)
        if touched:
            line = gdb.selected_frame().find_sal()
            print("behind an access by T%d at %s:%d, after step %d" % (self.program.thread(), line.symtab, line.line, here))
            gdb.execute("display")
        elif gdb.selected_inferior().pid and is_at_hook():
            self.tell()
            self.show()

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
        for change in self.bug.get("plain", []):
            values[change["variable"]] = (change["value"], None)
        for step in self.steps[: here - 1]:
            for change in step.get("plain", []):
                values[change["variable"]] = (change["value"], step["step"])
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
        if not 1 <= int(word) <= schedule.end:
            raise gdb.GdbError("the schedule has %d steps" % len(schedule.steps))
        schedule.stops.add(int(word))
        return print("stops before step %s" % word)
    known = {step.get("object") for step in schedule.steps}
    if word in known:
        schedule.variables.add(word)
        return print("stops before each access to %s" % word)
    try:
        value = in_c(lambda: evaluated(word))
        start, size = int(value.address), value.type.sizeof
        place = "*(char(*)[%d])%d" % (size, start)
        atomic = "atomic" in str(value.type.strip_typedefs()).lower()
        if not atomic:
            watch(place).delete()
    except (gdb.error, TypeError) as error:
        raise gdb.GdbError("no step of the schedule accesses %s, and it cannot be watched: %s" % (word, error))
    # The program lies at the same addresses when it runs again.
    schedule.ranges.append((start, start + size))
    if atomic:
        return print("stops before each access to %s" % word)
    schedule.plain.append(place)
    print("selvedge continue stops behind each access to %s, a plain variable" % word)


def evaluated(expression):
    """The value of an expression of the program, in the selected frame or else as one of global variables."""
    frame = gdb.selected_frame()
    if in_program(frame):
        try:
            return gdb.parse_and_eval(expression)
        except gdb.error:
            pass
    name = re.match(r"[\w:]*", expression).group()
    known = gdb.lookup_static_symbols(name) + [gdb.lookup_global_symbol(name)]
    ours = gdb.current_progspace().filename
    known = [symbol for symbol in known if symbol and symbol.is_variable and symbol.symtab.objfile.filename != ours]
    if not known:
        raise TypeError("the program has no such variable")
    return gdb.parse_and_eval("'%s'::%s" % (known[0].symtab.filename, expression))


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
    schedule.ranges.clear()


def list_steps(argument):
    here = max(1, schedule.current())
    for step in schedule.steps[max(0, here - 6) : here + 5]:
        print(("> " if step["step"] == here else "  ") + describe(step))


gdb.execute("set confirm off")
gdb.execute("set pagination off")
gdb.execute("set breakpoint pending on")
# What gdb says of threads and processes is about the checker.
gdb.execute("set print thread-events off")
gdb.execute("set print inferior-events off")
# The runtime handles these itself.
gdb.execute("handle SIGSEGV SIGBUS SIGFPE SIGILL SIGALRM SIGVTALRM SIGPROF SIGTRAP nostop noprint pass", to_string=True)
gdb.execute("handle SIGTRAP stop noprint nopass", to_string=True)
gdb.execute("set args " + ARGUMENTS)
schedule = Schedule(TRACE)


def stopped(event):
    if gdb.selected_inferior().pid and is_at_hook():
        schedule.program.find()
        if not schedule.commanded:
            schedule.within = False
            schedule.tell()


gdb.events.stop.connect(stopped)
gdb.events.cont.connect(lambda event: schedule.program.forget())
gdb.events.exited.connect(lambda event: schedule.program.forget())


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
