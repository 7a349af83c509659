#include <cassert>
#include <fstream>
#include <iostream>
#include <string>
int main() { int n; std::cin >> n; assert(n == 99); std::ifstream f("data.txt"); std::string s; assert(std::getline(f, s)); assert(s == "hello"); int a, b; f >> a >> b; assert(a == 12 && b == -7);
 { std::ofstream o("new.txt"); o << "text " << 5 << "\n"; } std::ifstream i("new.txt"); i >> s >> a; assert(s == "text" && a == 5); }
